-- Ten messages at a time are marked as claimed by this session, then those are selected. A
-- condition on the number of the row is Oracle's limit of an update.

-- name: install
create table unsent_email (
    id     number(19) generated always as identity constraint unsent_email_pk primary key,
    status varchar2(7) default 'unsent' not null check (status in ('unsent', 'claimed', 'sent')),
    owner  number(10) default 0 not null,
    ts     timestamp(6) default sys_extract_utc(systimestamp) not null,
    body   clob not null
)
/
create index email_ix on unsent_email (owner, status, ts)
/

-- name: enqueue
insert into unsent_email (body) values (:body)

-- name: fill
insert into unsent_email (body)
select j.body
from json_table(:messages, '$[*]' columns (place for ordinality, body clob path '$.body')) j
order by j.place

-- name: settle
call dbms_stats.gather_schema_stats(user)

-- name: claim
update unsent_email
set status = 'claimed',
    owner  = sys_context('userenv', 'sid'),
    ts     = sys_extract_utc(systimestamp)
where owner = 0 and status = 'unsent' and rownum <= :batch

-- name: own
select id, body
from unsent_email
where owner = sys_context('userenv', 'sid') and status = 'claimed'

-- name: complete
delete from unsent_email where id in (:ids)

-- name: reset_by_age
update unsent_email
set owner = 0, status = 'unsent'
where status = 'claimed'
  and ts < sys_extract_utc(systimestamp) - numtodsinterval(:seconds, 'second')

-- name: sessions
select s.sid from v$session s

-- name: reset_by_age_and_session
update unsent_email
set owner = 0, status = 'unsent'
where owner not in (:sessions)
  and status = 'claimed'
  and ts < sys_extract_utc(systimestamp) - numtodsinterval(:seconds, 'second')
