-- A scheduler's table and its two strategies. The columns and indexes are those that db-scheduler
-- documents, with moments in UTC; what it documents of its strategies is written here anew. Its own
-- code reads each picked row once more; the seed does not count that, and it is left out, in favour
-- of the first. Here lock and fetch is one call: a locking cursor, whose fetch bounds the batch,
-- and an update by row.

-- name: install
create table scheduled_tasks (
    task_name            varchar2(100 char) not null,
    task_instance        varchar2(100 char) not null,
    task_data            blob,
    execution_time       timestamp(6) not null,
    picked               number(1) not null,
    picked_by            varchar2(50 char),
    last_success         timestamp(6),
    last_failure         timestamp(6),
    consecutive_failures number(10),
    last_heartbeat       timestamp(6),
    version              number(19) not null,
    priority             number(5),
    constraint scheduled_tasks_pk primary key (task_name, task_instance)
)
/
create index scheduled_tasks_due on scheduled_tasks (execution_time)
/
create index scheduled_tasks_alive on scheduled_tasks (last_heartbeat)
/
create index scheduled_tasks_first on scheduled_tasks (priority desc, execution_time)
/
create type task_instances as table of varchar2(100 char)
/
create procedure lock_and_fetch(
    p_who        in varchar2,
    p_batch_size in number,
    p_rows       out sys_refcursor
)
is
    type t_rowids is table of rowid;
    cursor due is
        select /*+ index_rs_asc(t scheduled_tasks_due) no_batch_table_access_by_rowid(t) */ t.rowid
        from scheduled_tasks t
        where t.picked = 0
          and t.execution_time <= sys_extract_utc(systimestamp)
        order by t.execution_time
        for update skip locked;
    v_found     t_rowids := t_rowids();
    v_instances task_instances := task_instances();
begin
    -- A fetch of none is an error.
    if p_batch_size > 0 then
        open due;
        fetch due bulk collect into v_found limit p_batch_size;
        close due;
    end if;

    forall i in 1 .. v_found.count
        update scheduled_tasks t
        set t.picked         = 1,
            t.picked_by      = p_who,
            t.last_heartbeat = sys_extract_utc(systimestamp),
            t.version        = t.version + 1
        where t.rowid = v_found(i)
          and t.picked = 0
        returning t.task_instance bulk collect into v_instances;

    open p_rows for
        select /*+ leading(x) use_nl(t) index(t scheduled_tasks_pk) */
               t.task_instance, t.version, t.task_data
        from table(v_instances) x
        join scheduled_tasks t
          on t.task_name = 'once'
         and t.task_instance = x.column_value;
end lock_and_fetch;
/

-- name: fill
insert into scheduled_tasks
    (task_name, task_instance, task_data, execution_time, picked, version)
select 'once', to_char(x.n), utl_raw.cast_to_raw(rpad(to_char(x.n), 200, 'x')),
       sys_extract_utc(systimestamp) - interval '1' hour + numtodsinterval(x.n / 1e6, 'second'),
       0, 1
from (select level + :first - 1 as n from dual connect by level <= :last - :first + 1) x

-- name: settle
call dbms_stats.gather_schema_stats(user)

-- name: fetch
select y.task_instance, y.version, y.task_data
from (
    select x.task_instance, x.version, x.task_data
    from scheduled_tasks x
    where x.picked = 0 and x.execution_time <= sys_extract_utc(systimestamp)
    order by x.execution_time
) y
where rownum <= :batch

-- name: pick
update scheduled_tasks
set picked         = 1,
    picked_by      = :who,
    last_heartbeat = sys_extract_utc(systimestamp),
    version        = version + 1
where picked = 0
  and task_name = 'once'
  and task_instance = :instance
  and version = :version

-- name: remove
delete from scheduled_tasks
where task_name = 'once' and task_instance = :instance and version = :version

-- name: lock_and_fetch
begin
    lock_and_fetch(:who, :batch, :rows);
end;
