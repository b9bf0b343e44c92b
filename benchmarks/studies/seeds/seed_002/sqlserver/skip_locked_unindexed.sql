-- Jobs are selected with update locks, passing over locked ones, then marked. The index has the
-- state only: the order is made by sorting all jobs that wait, and all of those are locked.
-- like: skip_locked.sql

-- name: index
create nonclustered index job_ix on dbo.job (state);
