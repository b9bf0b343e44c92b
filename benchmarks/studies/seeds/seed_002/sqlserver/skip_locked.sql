-- Jobs are selected with update locks, passing over locked ones, then marked. The index gives their
-- order.
-- like: for_update.sql

-- name: jobs
from dbo.job j with (rowlock, updlock, readpast, readcommittedlock)
