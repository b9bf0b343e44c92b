-- Jobs are selected for update, passing over locked ones, then marked. The index gives their order.
-- like: for_update.sql

-- name: lock
for update skip locked
