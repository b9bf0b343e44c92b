-- The rows that rowq's promises need, written and deleted in rowq's own tables with nothing around
-- them: no check, no name of a queue, no pause, no floor, no archive, no key, no listener, no
-- owner's rights and no setting.
create schema bare;

create function bare.enqueue(p_body text)
returns bigint
language plpgsql
as $$
declare
    v_message_id bigint := nextval('rowq.message_seq');
begin
    insert into rowq.message (part_id, message_id, enqueued_at, body)
    values (1, v_message_id, clock_timestamp(), p_body);
    insert into rowq.ready (part_id, lane, seq, message_id)
    values (1, 11, v_message_id, v_message_id);
    return v_message_id;
end;
$$;

create function bare.enqueue_batch(p_messages jsonb)
returns setof bigint
language plpgsql
as $$
declare
    v_now         timestamp with time zone := clock_timestamp();
    v_message_ids bigint[];
begin
    v_message_ids := array(
        select nextval('rowq.message_seq')
        from generate_series(1, jsonb_array_length(p_messages))
    );
    insert into rowq.message (part_id, message_id, enqueued_at, body)
    select 1, n.message_id, v_now, n.message ->> 'body'
    from rows from (jsonb_array_elements(p_messages), unnest(v_message_ids)) n (
        message, message_id
    );
    insert into rowq.ready (part_id, lane, seq, message_id)
    select 1, 11, u.message_id, u.message_id
    from unnest(v_message_ids) u (message_id);
    return query select u.message_id from unnest(v_message_ids) u (message_id);
end;
$$;

create function bare.dequeue()
returns table (claim_id bigint, message_id bigint, body text)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_seq        bigint;
    v_message_id bigint;
    v_claim_id   bigint;
begin
    select r.seq, r.message_id
    into v_seq, v_message_id
    from rowq.ready r
    where r.part_id = 1
      and r.lane = 11
    order by r.part_id, r.lane, r.seq
    limit 1
    for update skip locked;
    delete from rowq.ready r
    where r.part_id = 1
      and r.lane = 11
      and r.seq = v_seq;
    insert into rowq.claim (part_id, lease_until, message_ids, lanes, attempts)
    values (
        1, clock_timestamp() + interval '10 minutes', array[v_message_id], '{11}', '{1}'
    )
    returning claim_id into v_claim_id;
    return query
    select v_claim_id, m.message_id, m.body
    from rowq.message m
    where m.part_id = 1
      and m.message_id = v_message_id;
end;
$$;

create function bare.complete(p_claim_id bigint)
returns bigint
language plpgsql
as $$
declare
    v_message_ids bigint[];
begin
    delete from rowq.claim c
    where c.part_id = 1
      and c.claim_id = p_claim_id
    returning c.message_ids into v_message_ids;
    delete from rowq.message m
    where m.part_id = 1
      and m.message_id = v_message_ids[1];
    return v_message_ids[1];
end;
$$;
