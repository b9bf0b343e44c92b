-- rowq's routines as a client calls them.

-- name: create
call rowq.create_queue(
    'bench', null, null, null, null, null, null, null, null, null, null, null, null, null, null,
    null, null
)

-- name: enqueue
call rowq.enqueue(
    'bench', :body, null, null, null, null, null, null, null, null, null, null, null, null
)

-- name: fill
call rowq.enqueue_batch('bench', :messages)

-- name: enqueue_after
call rowq.enqueue(
    'bench', :body, null, null, null, null, null, null, null, null, null,
    if(:predecessor = 0, null, json_array(:predecessor)), null, null
)

-- name: fill_chains
call rowq.enqueue_batch('bench', :messages)

-- name: dequeue
call rowq.dequeue_fast('bench', :batch, 'bench', 600)

-- name: complete
call rowq.complete('bench', :claim, null, null)

-- name: complete_one
call rowq.complete('bench', :claim, json_array(:message), null)

-- name: maintain
call rowq.maintain(null, null)
