-- rowq's routines as a client calls them.

-- name: create
select queue_name from rowq.create_queue('bench')

-- name: enqueue
select message_id from rowq.enqueue('bench', :body)

-- name: fill
select count(*) from rowq.enqueue_batch('bench', :messages)

-- name: settle
vacuum (analyze)

-- name: enqueue_after
select message_id
from rowq.enqueue(
    'bench', :body, p_predecessor_ids => nullif(array[:predecessor::bigint], array[0::bigint])
)

-- name: fill_chains
select position, message_id from rowq.enqueue_batch('bench', :messages)

-- name: dequeue
select * from rowq.dequeue_fast('bench', :batch, 'bench', 600)

-- name: complete
select message_id, outcome from rowq.complete('bench', :claim)

-- name: complete_one
select message_id, outcome from rowq.complete('bench', :claim, array[:message::bigint])

-- name: maintain
select queue_name from rowq.maintain('bench')
