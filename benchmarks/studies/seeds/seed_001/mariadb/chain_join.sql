-- A message may name its predecessor, and is taken only when that is gone: by a join at dequeue.
-- The consumer's transaction is open until the message is deleted. Locked rows are passed over.

-- name: install
create table rowq_bench.queue (
    id bigint not null auto_increment primary key,
    predecessor_id bigint null,
    queue_name varchar(255) not null,
    data_type varchar(255) not null,
    data longtext not null,
    retries_remaining int null check (retries_remaining >= 0),
    is_failed boolean generated always as (coalesce(retries_remaining = 0, false)) stored,
    queued_on datetime not null default utc_timestamp(),
    delay_until datetime null,
    last_failed_on datetime null,
    last_failure longtext null,
    key queue_ix (is_failed, queue_name, delay_until)
) engine = innodb

-- name: session
set session transaction isolation level read committed

-- name: fill
insert into rowq_bench.queue (id, predecessor_id, queue_name, data_type, data, delay_until)
select seq,
       if(seq > 1 and (seq <= :stuck or seq % :length <> 1), seq - 1, null),
       'bench', 'text', rpad(seq, 200, 'x'),
       if(seq = 1 and :stuck > 0, utc_timestamp() + interval 1 day, null)
from rowq_bench.seq_1_to_100000000
where seq <= :count

-- name: settle
analyze table rowq_bench.queue

-- name: enqueue
insert into rowq_bench.queue (predecessor_id, queue_name, data_type, data)
values (nullif(:predecessor, 0), 'bench', 'text', rpad(:predecessor, 200, 'x'))
returning id

-- name: dequeue
select one.id, one.data
from rowq_bench.queue one
left join rowq_bench.queue predecessor on predecessor.id = one.predecessor_id
where one.is_failed = false
  and one.queue_name = 'bench'
  and (one.delay_until is null or one.delay_until < utc_timestamp())
  and predecessor.id is null
limit 1
-- part: lock

-- name: lock
for update skip locked

-- name: finish
delete from rowq_bench.queue where id = :id
