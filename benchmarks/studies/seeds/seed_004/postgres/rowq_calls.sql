-- rowq's routines as the executors of seed 004 call them.

-- name: dequeue
select claim_id, message_id, body from rowq.dequeue_fast('bench', :batch, 'bench', 600)

-- name: complete_one
select outcome from rowq.complete('bench', :claim, array[:message::bigint])

-- name: complete
select outcome from rowq.complete('bench', :claim)
