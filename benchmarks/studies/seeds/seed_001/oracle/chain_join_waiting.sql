-- A message may name its predecessor, and is taken only when that is gone: by a join at dequeue.
-- The consumer's transaction is open until the message is deleted. Locked rows are waited for.
-- like: chain_join.sql

-- name: procedure

-- name: dequeue
select one.id, one.data
from queue one, queue predecessor
where predecessor.id (+) = one.predecessor_id
  and one.is_failed = 0
  and one.queue_name = 'bench'
  and (one.delay_until is null or one.delay_until < sys_extract_utc(systimestamp))
  and predecessor.id is null
  and rownum <= 1
for update of one.id
