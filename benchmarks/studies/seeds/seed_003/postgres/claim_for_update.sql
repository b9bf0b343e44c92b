-- Ten messages at a time are selected for update, then marked as claimed by this session.
-- like: claim_update_limit.sql

-- name: find
select id, body
from seed.unsent_email
where owner = 0 and status = 'unsent'
limit :batch::integer
for update

-- name: mark
update seed.unsent_email
set status = 'claimed', owner = pg_backend_pid(), ts = clock_timestamp()
where id = any (:ids)
