-- Ten messages at a time are selected for update, then marked as claimed by this session.

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

-- name: complete
delete from unsent_email where id in (:ids)
