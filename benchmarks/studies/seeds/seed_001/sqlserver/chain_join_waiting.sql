-- A message may name its predecessor, and is taken only when that is gone: by a join at dequeue.
-- The consumer's transaction is open until the message is deleted. Locked rows are waited for.
-- The predecessor is read under a shared lock, as in a database without row versions.
-- like: chain_join.sql

-- name: queue
from dbo.queue one with (rowlock, updlock)
