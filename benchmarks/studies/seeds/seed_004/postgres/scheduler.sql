-- A scheduler's table and its two strategies. The columns and indexes are those that db-scheduler
-- documents; what it documents of its strategies is written here anew. Its own code reads each
-- picked row once more; the seed does not count that, and it is left out, in favour of the first.

-- name: install
create table seed.scheduled_tasks (
    task_name text not null,
    task_instance text not null,
    task_data bytea,
    execution_time timestamp with time zone not null,
    picked boolean not null,
    picked_by text,
    last_success timestamp with time zone,
    last_failure timestamp with time zone,
    consecutive_failures integer,
    last_heartbeat timestamp with time zone,
    version bigint not null,
    priority smallint,
    primary key (task_name, task_instance)
);
create index on seed.scheduled_tasks (execution_time);
create index on seed.scheduled_tasks (last_heartbeat);
create index on seed.scheduled_tasks (priority desc, execution_time);

-- name: fill
insert into seed.scheduled_tasks
    (task_name, task_instance, task_data, execution_time, picked, version)
select 'once', n::text, convert_to(rpad(n::text, 200, 'x'), 'UTF8'),
       now() - interval '1 hour' + n * interval '1 microsecond', false, 1
from generate_series(:first::bigint, :last::bigint) n

-- name: settle
vacuum (analyze) seed.scheduled_tasks

-- name: fetch
select task_instance, version, task_data
from seed.scheduled_tasks
where picked = false and execution_time <= now()
order by execution_time
limit :batch::integer

-- name: pick
update seed.scheduled_tasks
set picked = true, picked_by = :who::text, last_heartbeat = now(), version = version + 1
where picked = false
  and task_name = 'once'
  and task_instance = :instance::text
  and version = :version::bigint

-- name: remove
delete from seed.scheduled_tasks
where task_name = 'once' and task_instance = :instance::text and version = :version::bigint

-- name: lock_and_fetch
update seed.scheduled_tasks one
set picked = true, picked_by = :who::text, last_heartbeat = now(), version = version + 1
where (one.task_name, one.task_instance) in (
    select two.task_name, two.task_instance
    from seed.scheduled_tasks two
    where two.picked = false and two.execution_time <= now()
    order by two.execution_time
    limit :batch::integer
    for update skip locked
)
returning one.task_instance, one.version, one.task_data
