-- A scheduler's table and its two strategies. The columns and indexes are those that db-scheduler
-- documents; what it documents of its strategies is written here anew. Its own code reads each
-- picked row once more; the seed does not count that, and it is left out, in favour of the first.
-- It does not lock and fetch on MariaDB, which has no update with returning: here it is a
-- transaction of a locking select and an update.

-- name: install
create table rowq_bench.scheduled_tasks (
    task_name varchar(100) not null,
    task_instance varchar(100) not null,
    task_data blob,
    execution_time timestamp(6) not null,
    picked boolean not null,
    picked_by varchar(50),
    last_success timestamp(6) null,
    last_failure timestamp(6) null,
    consecutive_failures int,
    last_heartbeat timestamp(6) null,
    version bigint not null,
    priority smallint,
    primary key (task_name, task_instance),
    key (execution_time),
    key (last_heartbeat),
    key (priority desc, execution_time)
) engine = innodb

-- name: fill
insert into rowq_bench.scheduled_tasks
    (task_name, task_instance, task_data, execution_time, picked, version)
select 'once', seq, rpad(seq, 200, 'x'),
       now(6) - interval 1 hour + interval seq microsecond, false, 1
from rowq_bench.seq_1_to_100000000
where seq between :first and :last

-- name: settle
analyze table rowq_bench.scheduled_tasks

-- name: fetch
select task_instance, version, task_data
from rowq_bench.scheduled_tasks
where picked = false and execution_time <= now(6)
order by execution_time
limit :batch

-- name: pick
update rowq_bench.scheduled_tasks
set picked = true, picked_by = :who, last_heartbeat = now(6), version = version + 1
where picked = false
  and task_name = 'once'
  and task_instance = :instance
  and version = :version

-- name: remove
delete from rowq_bench.scheduled_tasks
where task_name = 'once' and task_instance = :instance and version = :version

-- name: lock
select task_instance, version + 1, task_data
from rowq_bench.scheduled_tasks
where picked = false and execution_time <= now(6)
order by execution_time
limit :batch
for update skip locked

-- name: mark
update rowq_bench.scheduled_tasks
set picked = true, picked_by = :who, last_heartbeat = now(6), version = version + 1
where task_name = 'once' and task_instance in (:instances)
