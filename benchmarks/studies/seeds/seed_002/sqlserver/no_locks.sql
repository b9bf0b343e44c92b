-- Jobs are selected, then marked, in one transaction but without a lock on what was selected.
-- like: for_update.sql

-- name: jobs
from dbo.job j
