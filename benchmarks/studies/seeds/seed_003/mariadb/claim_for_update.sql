-- Ten messages at a time are selected for update, then marked as claimed by this connection.
-- like: claim_update_limit.sql

-- name: find
select id, body
from rowq_bench.unsent_email
where owner = 0 and status = 'unsent'
limit :batch
for update

-- name: mark
update rowq_bench.unsent_email
set status = 'claimed', owner = connection_id()
where id in (:ids)
