create or replace function rowq.internal_pop_claimed(
    p_part_id     integer,
    p_claim_id    bigint,
    p_message_ids bigint[],
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[],
    out o_cancel_ids  bigint[],
    out o_worker_name text,
    out o_leased_at   timestamp with time zone
)
language plpgsql
as $$
-- routine   internal_pop_claimed
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them. o_cancel_ids are those of them that were cancelled, null where there is none.
-- promise   P08
-- locks     the claim row, first of all
-- errors    RQ711 RQ721
-- differs   elsewhere a claim's messages are rows of a table
declare
    v_kept_ids      bigint[];
    v_kept_lanes    smallint[];
    v_kept_attempts smallint[];
    v_kept_errors   text[];
    v_kept_cancels  bigint[];
begin
    if p_claim_id is null then
        raise exception 'RQ711 invalid_argument: claim_id is missing'
            using errcode = 'RQ711';
    end if;
    if (cardinality(p_message_ids) <> 1 or p_message_ids[1] is null)
       and not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a flat list of at most 10000 ids, no null'
            using errcode = 'RQ711';
    end if;

    delete from rowq.claim c
    where c.part_id = p_part_id
      and c.claim_id = p_claim_id
      and (p_message_ids is null or c.message_ids <@ p_message_ids)
    returning c.message_ids, c.lanes, c.attempts, c.errors, c.cancel_ids, c.worker_name,
              c.leased_at
    into o_message_ids, o_lanes, o_attempts, o_errors, o_cancel_ids, o_worker_name, o_leased_at;
    if found then
        return;
    end if;

    select c.message_ids, c.lanes, c.attempts, c.errors, c.cancel_ids, c.worker_name, c.leased_at
    into v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors, v_kept_cancels,
         o_worker_name, o_leased_at
    from rowq.claim c
    where c.part_id = p_part_id
      and c.claim_id = p_claim_id
    for update;
    if not found and p_message_ids is null then
        raise exception 'RQ721 stale_claim: claim % holds nothing any more', p_claim_id
            using errcode = 'RQ721';
    end if;

    select coalesce(array_agg(u.message_id) filter (where u.is_asked), '{}'),
           array_agg(u.lane) filter (where u.is_asked),
           array_agg(u.attempt) filter (where u.is_asked),
           array_agg(u.last_error) filter (where u.is_asked),
           array_agg(u.message_id) filter (where not u.is_asked),
           array_agg(u.lane) filter (where not u.is_asked),
           array_agg(u.attempt) filter (where not u.is_asked),
           array_agg(u.last_error) filter (where not u.is_asked)
    into o_message_ids, o_lanes, o_attempts, o_errors,
         v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors
    from (
        select x.message_id, x.lane, x.attempt, x.last_error,
               x.message_id = any (p_message_ids) as is_asked
        from unnest(v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors)
            x (message_id, lane, attempt, last_error)
    ) u;

    if v_kept_cancels is not null then
        select array_agg(u.message_id) filter (where u.message_id = any (o_message_ids)),
               array_agg(u.message_id) filter (where u.message_id <> all (o_message_ids))
        into o_cancel_ids, v_kept_cancels
        from unnest(v_kept_cancels) u (message_id);
    end if;

    if v_kept_ids is null then
        -- Another session finished the rest of the claim between the two statements above, so
        -- nothing of it is left.
        delete from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id;
    elsif o_message_ids <> '{}' then
        update rowq.claim c
        set message_ids = v_kept_ids,
            lanes       = v_kept_lanes,
            attempts    = v_kept_attempts,
            errors      = v_kept_errors,
            cancel_ids  = v_kept_cancels
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id;
    end if;
end;
$$;
