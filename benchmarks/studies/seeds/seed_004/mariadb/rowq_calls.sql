-- rowq's routines as the executors of seed 004 call them.

-- name: dequeue
call rowq.dequeue_fast('bench', :batch, 'bench', 600)

-- name: complete_one
call rowq.complete('bench', :claim, json_array(:message))

-- name: complete
call rowq.complete('bench', :claim, null)
