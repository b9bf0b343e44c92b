create or replace function rowq.internal_reap(
    p_part_id      integer,
    p_max_attempts integer,
    p_history_days integer,
    p_limit        integer,
    out o_reaped   integer,
    out o_died     integer
)
language plpgsql
as $$
-- routine   internal_reap
-- purpose   Take messages back from expired claims to the front of their lanes, until p_limit is passed.
-- promise   P03 P09 P34 P37
-- locks     expired claim rows, passing over locked ones; for cancelled messages as
--           internal_finish; new history rows
declare
    v_from       constant bigint := rowq.internal_read_floor(p_part_id, -1::smallint /* claim */);
    -- A cursor locks no claim before it comes to it; a loop over a query would lock some ahead.
    v_expired cursor for
        select c.claim_id, c.message_ids, c.lanes, c.attempts, c.worker_name, c.leased_at,
               c.cancel_ids
        from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id >= v_from
          and c.lease_until <= clock_timestamp()
        order by c.part_id, c.claim_id
        for update skip locked;
    v_claim      record;
    v_rest       record;
    v_ended      integer := 0;
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
    open v_expired;
    while o_reaped + o_died + v_ended < p_limit loop
        fetch v_expired into v_claim;
        exit when not found;

        if v_claim.cancel_ids is not null then
            v_rest := rowq.internal_end_cancelled(
                p_part_id, v_claim.message_ids, v_claim.lanes, v_claim.attempts, null,
                v_claim.cancel_ids, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at
            );
            v_claim.message_ids := v_rest.o_message_ids;
            v_claim.lanes := v_rest.o_lanes;
            v_claim.attempts := v_rest.o_attempts;
            v_ended := v_ended + cardinality(v_rest.o_cancel_ids);
        end if;
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
        if p_history_days > 0 then
            perform rowq.internal_push_history(
                p_part_id, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at,
                v_claim.message_ids, v_claim.attempts, 'lease_expired', v_error
            );
        end if;
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
    close v_expired;
end;
$$;
