-- Jobs are selected for update, then marked: who comes second waits for the first to commit.

-- name: install
create table rowq_bench.job (
    job_id      bigint not null auto_increment primary key,
    state       char(1) not null default 'N',
    create_time datetime(6) not null default current_timestamp(6),
    body        varchar(255) not null,
    -- part: index
) engine = innodb;

create procedure rowq_bench.take(p_limit int)
begin
    declare v_ids longtext;
    select json_arrayagg(x.job_id) into v_ids
    from (
        select j.job_id
        from rowq_bench.job j
        where j.state = 'N'
        order by j.create_time, j.job_id
        limit p_limit
        -- part: lock
    ) x;

    update json_table(v_ids, '$[*]' columns (job_id bigint path '$')) x
    straight_join rowq_bench.job j on j.job_id = x.job_id
    set j.state = 'A';

    select j.job_id, j.body
    from json_table(v_ids, '$[*]' columns (job_id bigint path '$')) x
    straight_join rowq_bench.job j on j.job_id = x.job_id;
end;

create procedure rowq_bench.get_jobs(p_limit int)
begin
    start transaction;
    call rowq_bench.take(p_limit);
    commit;
end;

-- name: index
key job_ix (state, create_time, job_id)

-- name: lock
for update

-- name: enqueue
insert into rowq_bench.job (body) values (:body)

-- name: fill
insert into rowq_bench.job (body)
select j.body
from json_table(:messages, '$[*]' columns (place for ordinality, body varchar(255) path '$.body')) j

-- name: settle
analyze table rowq_bench.job

-- name: dequeue
call rowq_bench.get_jobs(:batch)

-- name: dequeue_held
call rowq_bench.take(:batch)

-- name: complete
update rowq_bench.job set state = 'C' where job_id in (:ids)
