-- A scheduler's table and its two strategies. The columns and indexes are those that db-scheduler
-- documents; what it documents of its strategies is written here anew. Its own code reads each
-- picked row once more; the seed does not count that, and it is left out, in favour of the first.
-- Lock and fetch is one statement, as the document has it on PostgreSQL: an update with an output.

-- name: install
create table dbo.scheduled_tasks (
    task_name            varchar(250) not null,
    task_instance        varchar(250) not null,
    task_data            varbinary(max) null,
    execution_time       datetimeoffset not null,
    picked               bit not null,
    picked_by            varchar(50) null,
    last_success         datetimeoffset null,
    last_failure         datetimeoffset null,
    consecutive_failures int null,
    last_heartbeat       datetimeoffset null,
    version              bigint not null,
    priority             smallint null,
    constraint scheduled_tasks_pk primary key clustered (task_name, task_instance)
);
create nonclustered index execution_time_ix on dbo.scheduled_tasks (execution_time);
create nonclustered index last_heartbeat_ix on dbo.scheduled_tasks (last_heartbeat);
create nonclustered index priority_ix on dbo.scheduled_tasks (priority desc, execution_time);
go
create view dbo.number as
with digit (n) as (
    select v.n from (values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) v (n)
)
select 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n as n
from digit a
cross join digit b
cross join digit c
cross join digit d
cross join digit e;
go

-- name: fill
insert into dbo.scheduled_tasks
    (task_name, task_instance, task_data, execution_time, picked, version)
select 'once', cast(n.n as varchar(250)),
       cast(left(concat(n.n, replicate('x', 200)), 200) as varbinary(max)),
       dateadd(microsecond, n.n, dateadd(hour, -1, sysdatetimeoffset())), 0, 1
from dbo.number n
where n.n between :first and :last

-- name: settle
alter index all on dbo.scheduled_tasks rebuild

-- name: fetch
select top (:batch) t.task_instance, t.version, t.task_data
from dbo.scheduled_tasks t
where t.picked = 0 and t.execution_time <= sysdatetimeoffset()
order by t.execution_time

-- name: pick
update dbo.scheduled_tasks
set picked = 1, picked_by = :who, last_heartbeat = sysdatetimeoffset(), version = version + 1
where picked = 0
  and task_name = 'once'
  and task_instance = cast(:instance as varchar(250))
  and version = :version

-- name: remove
delete from dbo.scheduled_tasks
where task_name = 'once'
  and task_instance = cast(:instance as varchar(250))
  and version = :version

-- name: lock_and_fetch
with due as (
    select top (:batch) t.task_instance, t.version, t.task_data, t.picked, t.picked_by,
           t.last_heartbeat
    from dbo.scheduled_tasks t with (rowlock, updlock, readpast, readcommittedlock)
    where t.picked = 0 and t.execution_time <= sysdatetimeoffset()
    order by t.execution_time
)
update due
set picked = 1, picked_by = :who, last_heartbeat = sysdatetimeoffset(), version = version + 1
output inserted.task_instance, inserted.version, inserted.task_data
