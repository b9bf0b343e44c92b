-- Ten messages at a time are selected for update, then marked as claimed by this session.
-- like: claim_update_limit.sql

-- name: find
select id, body
from unsent_email
where owner = 0 and status = 'unsent' and rownum <= :batch
for update

-- name: mark
update unsent_email
set status = 'claimed',
    owner  = sys_context('userenv', 'sid'),
    ts     = sys_extract_utc(systimestamp)
where id in (:ids)
