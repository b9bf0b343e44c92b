-- One wide table. Dequeue selects rows for update, updates them, and reads them again. Rows that
-- were processed stay until an archiver moves them. Its batch is an array of keys, where the
-- document has a table variable with the bodies in it.

-- name: install
create table seed.queue_slow (
    queue_id        integer generated always as identity primary key,
    queue_date_time timestamp not null default clock_timestamp(),
    title           varchar(255) not null,
    status          integer not null default 0,
    text_data       text not null
);
create index queue_slow_ix on seed.queue_slow (queue_date_time, status) include (title);

create function seed.dequeue_slow(p_batch_size integer)
returns table (queue_id integer, text_data text, queue_date_time timestamp, title varchar)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_ids     integer[];
    v_updated integer;
begin
    select array_agg(x.queue_id)
    into v_ids
    from (
        select q.queue_id
        from seed.queue_slow q
        where q.status = 0
        order by q.queue_date_time
        limit p_batch_size
        for update
    ) x;

    update seed.queue_slow q
    set status = 1
    where q.queue_id = any (v_ids)
      and q.status = 0;
    get diagnostics v_updated = row_count;
    if v_updated <> cardinality(v_ids) then
        raise exception 'another session has taken some of them' using errcode = '40001';
    end if;

    return query
    select q.queue_id, q.text_data, q.queue_date_time, q.title
    from seed.queue_slow q
    where q.queue_id = any (v_ids);
end;
$$;

-- name: enqueue
insert into seed.queue_slow (title, text_data) values ('Item', :body)

-- name: fill
insert into seed.queue_slow (title, text_data)
select 'Item no: ' || x.place, x.message ->> 'body'
from jsonb_array_elements(:messages::jsonb) with ordinality x (message, place)

-- name: settle
vacuum (analyze)

-- name: dequeue
select * from seed.dequeue_slow(:batch)

-- name: complete
update seed.queue_slow set status = 2 where queue_id = any (:ids)
