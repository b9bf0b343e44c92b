-- A message may name its predecessor, and is taken only when that is gone: by a join at dequeue.
-- The consumer's transaction is open until the message is deleted. Locked rows are waited for.
-- like: chain_join.sql

-- name: lock
for update of one
