-- Ten messages at a time are selected for update, then marked as claimed by this connection.

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

-- name: complete
delete from rowq_bench.unsent_email where id in (:ids)
