-- Ten messages at a time are selected with update locks, then marked as claimed by this session.
-- like: claim_update_limit.sql

-- name: find
select top (:batch) e.id, e.body
from dbo.unsent_email e with (rowlock, updlock)
where e.owner = 0 and e.status = 'unsent'

-- name: mark
update dbo.unsent_email
set status = 'claimed', owner = @@spid, ts = sysutcdatetime()
where id in (:ids)
