-- Jobs are selected for update, passing over locked ones, then marked. The index has the state only:
-- the order is made by sorting all jobs that wait.
-- like: skip_locked.sql

-- name: index
key job_ix (state)
