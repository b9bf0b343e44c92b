-- Ten messages at a time are marked as claimed by this connection, then those are selected.

-- name: install
create table rowq_bench.unsent_email (
    id     bigint unsigned not null auto_increment primary key,
    status enum('unsent', 'claimed', 'sent') not null default 'unsent',
    owner  bigint unsigned not null default 0,
    ts     timestamp(6) not null default current_timestamp(6) on update current_timestamp(6),
    body   longtext not null,
    key email_ix (owner, status, ts)
) engine = innodb

-- name: enqueue
insert into rowq_bench.unsent_email (body) values (:body)

-- name: fill
insert into rowq_bench.unsent_email (body)
select j.body
from json_table(:messages, '$[*]' columns (place for ordinality, body longtext path '$.body')) j

-- name: settle
analyze table rowq_bench.unsent_email

-- name: claim
update rowq_bench.unsent_email
set status = 'claimed', owner = connection_id()
where owner = 0 and status = 'unsent'
limit :batch

-- name: own
select id, body
from rowq_bench.unsent_email
where owner = connection_id() and status = 'claimed'

-- name: complete
delete from rowq_bench.unsent_email where id in (:ids)

-- name: reset_by_age
update rowq_bench.unsent_email
set owner = 0, status = 'unsent'
where status = 'claimed'
  and ts < current_timestamp(6) - interval :seconds second

-- name: sessions
select id from information_schema.processlist

-- name: reset_by_age_and_session
update rowq_bench.unsent_email
set owner = 0, status = 'unsent'
where owner not in (:sessions)
  and status = 'claimed'
  and ts < current_timestamp(6) - interval :seconds second
