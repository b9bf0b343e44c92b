create or replace function rowq.internal_lock_dead(
    p_queue_name   text,
    p_message_ids  bigint[],
    p_max_messages integer,
    p_message_type text,
    p_died_before  timestamp with time zone,
    out o_part_id     integer,
    out o_message_ids bigint[],
    out o_tokenless   bigint[]
)
language plpgsql
as $$
-- routine   internal_lock_dead
-- purpose   Refuse bad arguments of reset and discard_dead, and lock the dead messages that they mean. o_tokenless are those without a token of a group.
-- locks     dead rows, passing over locked ones
-- errors    RQ711
begin
    if not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a flat list of at most 10000 ids, no null'
            using errcode = 'RQ711';
    end if;
    if p_max_messages is null or p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    if p_message_ids is not null and num_nonnulls(p_message_type, p_died_before) > 0 then
        raise exception 'RQ711 invalid_argument: '
            'message_type and died_before go together with no message_ids'
            using errcode = 'RQ711';
    end if;
    o_part_id := (rowq.internal_require_queue(p_queue_name)).part_id;

    select array_agg(h.message_id), array_agg(h.message_id) filter (where h.is_outside)
    into o_message_ids, o_tokenless
    from (
        select d.message_id, d.holds_group is null as is_outside
        from rowq.dead d
        where d.part_id = o_part_id
          and (p_message_ids is null or d.message_id = any (p_message_ids))
          and (p_died_before is null or d.died_at < p_died_before)
          and (p_message_type is null or p_message_type = (
              -- A value from a query is looked up by key for each dead message, whatever the
              -- planner thinks of the sizes.
              select m.message_type
              from rowq.message m
              where m.part_id = d.part_id
                and m.message_id = d.message_id
          ))
        order by d.part_id, d.message_id
        limit case when p_message_ids is null then p_max_messages else 10000 end
        for update skip locked
    ) h;
end;
$$;
