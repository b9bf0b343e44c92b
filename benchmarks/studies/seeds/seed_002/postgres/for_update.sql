-- Jobs are selected for update, then marked: who comes second waits for the first to commit.

-- name: install
create table seed.job (
    job_id      bigint generated always as identity primary key,
    state       char(1) not null default 'N',
    create_time timestamp not null default clock_timestamp(),
    body        varchar(255) not null
);
-- part: index

create function seed.get_jobs(p_limit integer)
returns table (job_id bigint, body varchar)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_ids bigint[];
begin
    select array_agg(x.job_id)
    into v_ids
    from (
        select j.job_id
        from seed.job j
        where j.state = 'N'
        order by j.create_time, j.job_id
        limit p_limit
        -- part: lock
    ) x;

    update seed.job j
    set state = 'A'
    where j.job_id = any (v_ids);

    return query
    select j.job_id, j.body
    from seed.job j
    where j.job_id = any (v_ids);
end;
$$;

-- name: index
create index job_ix on seed.job (state, create_time, job_id);

-- name: lock
for update

-- name: enqueue
insert into seed.job (body) values (:body)

-- name: fill
insert into seed.job (body)
select x.message ->> 'body'
from jsonb_array_elements(:messages::jsonb) with ordinality x (message, place)
order by x.place

-- name: settle
vacuum (analyze)

-- name: dequeue
select * from seed.get_jobs(:batch)

-- name: complete
update seed.job set state = 'C' where job_id = any (:ids)
