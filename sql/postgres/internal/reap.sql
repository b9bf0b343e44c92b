create or replace function rowq.internal_reap(
    p_part_id      integer,
    p_max_attempts integer,
    p_limit        integer,
    out o_reaped   integer,
    out o_died     integer
)
language plpgsql
as $$
-- routine   internal_reap
-- purpose   Take messages back from expired claims to the front of their lanes, until p_limit is passed.
-- promise   P03 P09
-- locks     expired claim rows, passing over locked ones
declare
    v_claim      record;
    v_lanes      smallint[];
    v_ids        bigint[];
    v_attempts   smallint[];
    v_dead_lanes smallint[];
    v_dead_ids   bigint[];
    v_dead_tries smallint[];
    v_error      text;
begin
    o_reaped := 0;
    o_died := 0;
    -- Pass over a claim whose heartbeat or finish came first: its lease is longer by then, or its
    -- row is locked or gone.
    for v_claim in
        select c.claim_id, c.message_ids, c.lanes, c.attempts, c.worker_name
        from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id >= rowq.internal_read_floor(p_part_id, -1::smallint)
          and c.lease_until <= clock_timestamp()
        order by c.part_id, c.claim_id
        limit p_limit
        for update skip locked
    loop
        exit when o_reaped + o_died >= p_limit;

        select array_agg((u.lane / 2 * 2)::smallint) filter (where u.attempt < u.allowed),
               array_agg(u.message_id) filter (where u.attempt < u.allowed),
               array_agg(u.attempt) filter (where u.attempt < u.allowed),
               array_agg(u.lane) filter (where u.attempt >= u.allowed),
               array_agg(u.message_id) filter (where u.attempt >= u.allowed),
               array_agg(u.attempt) filter (where u.attempt >= u.allowed)
        into v_lanes, v_ids, v_attempts, v_dead_lanes, v_dead_ids, v_dead_tries
        from rowq.internal_with_max_attempts(
            p_part_id, v_claim.message_ids, v_claim.lanes, v_claim.attempts, p_max_attempts
        ) u;

        delete from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id = v_claim.claim_id;

        v_error := 'lease expired' || coalesce(': ' || v_claim.worker_name, '');
        if v_ids is not null then
            perform rowq.internal_push_ready(
                p_part_id, v_lanes, v_ids, v_attempts,
                array_fill(v_error, array[cardinality(v_ids)])
            );
            o_reaped := o_reaped + cardinality(v_ids);
        end if;
        if v_dead_ids is not null then
            perform rowq.internal_push_dead(
                p_part_id, v_dead_lanes, v_dead_ids, v_dead_tries,
                array_fill(v_error, array[cardinality(v_dead_ids)])
            );
            o_died := o_died + cardinality(v_dead_ids);
        end if;
    end loop;
end;
$$;
