-- Jobs are selected for update, then marked: who comes second waits for the first to commit. An
-- ordered `for update` would lock all jobs that wait, so the first ones are chosen by a subquery
-- and then locked: where another session was faster, Oracle begins that statement anew.

-- name: install
create table job (
    job_id      number(19) generated always as identity constraint job_pk primary key,
    state       char(1) default 'N' not null,
    create_time timestamp(6) default sys_extract_utc(systimestamp) not null,
    body        varchar2(255 char) not null
)
/
-- part: index
/
create type job_ids as table of number(19)
/
-- part: procedure

-- name: index
create index job_ix on job (state, create_time, job_id)

-- name: procedure
create procedure get_jobs(p_limit in number, p_rows out sys_refcursor)
is
    v_ids job_ids;
begin
    -- part: choice

    forall i in 1 .. v_ids.count
        update job j
        set j.state = 'A'
        where j.job_id = v_ids(i);

    open p_rows for
        select /*+ leading(x) use_nl(j) index(j job_pk) */ j.job_id, j.body
        from table(v_ids) x
        join job j on j.job_id = x.column_value;
end get_jobs;
/

-- name: choice
select /*+ use_nl(j) index(j job_pk) */ j.job_id
bulk collect into v_ids
from job j
where j.state = 'N'
  and j.job_id in (
    select y.job_id
    from (
        select /*+ index_rs_asc(x job_ix) */ x.job_id
        from job x
        where x.state = 'N'
        order by x.create_time, x.job_id
    ) y
    where rownum <= p_limit
)
for update;

-- name: enqueue
insert into job (body) values (:body)

-- name: fill
insert into job (body)
select j.body
from json_table(
    :messages, '$[*]' columns (place for ordinality, body varchar2(255 char) path '$.body')
) j
order by j.place

-- name: settle
call dbms_stats.gather_schema_stats(user)

-- name: dequeue
begin
    get_jobs(:batch, :rows);
end;

-- name: complete
update job set state = 'C' where job_id in (:ids)
