-- The shape of pgmq, written anew: its one table with its two indexes, and the statement that each
-- of its functions runs, for one queue and without the dynamic SQL that finds the queue's table.
create schema bare;

create table bare.queue (
    msg_id       bigint generated always as identity primary key,
    read_ct      integer not null default 0,
    enqueued_at  timestamp with time zone not null default now(),
    last_read_at timestamp with time zone,
    vt           timestamp with time zone not null,
    message      jsonb,
    headers      jsonb
);
create index queue_vt on bare.queue (vt);

create function bare.send(p_message jsonb)
returns bigint
language plpgsql
as $$
declare
    v_msg_id bigint;
begin
    insert into bare.queue (vt, message)
    values (clock_timestamp(), p_message)
    returning msg_id into v_msg_id;
    return v_msg_id;
end;
$$;

create function bare.send_batch(p_messages jsonb[])
returns setof bigint
language plpgsql
as $$
declare
    v_now timestamp with time zone := clock_timestamp();
begin
    return query
    insert into bare.queue (vt, message)
    select v_now, unnest(p_messages)
    returning msg_id;
end;
$$;

create function bare.read()
returns setof bare.queue
language plpgsql
as $$
begin
    return query
    with head as (
        select q.msg_id
        from bare.queue q
        where q.vt <= clock_timestamp()
        order by q.msg_id
        limit 1
        for update skip locked
    )
    update bare.queue q
    set last_read_at = clock_timestamp(),
        vt = clock_timestamp() + interval '10 minutes',
        read_ct = q.read_ct + 1
    from head h
    where q.msg_id = h.msg_id
    returning q.*;
end;
$$;

create function bare.delete(p_msg_id bigint)
returns boolean
language plpgsql
as $$
begin
    delete from bare.queue q
    where q.msg_id = p_msg_id;
    return found;
end;
$$;
