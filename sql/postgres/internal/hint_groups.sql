create or replace function rowq.internal_hint_groups(p_part_id integer)
returns void
language plpgsql
as $$
-- routine   internal_hint_groups
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- promise   P24
-- locks     new recheck rows
begin
    -- Go from group to group and not from message to message.
    insert into rowq.recheck (part_id, is_hint, due_at, group_key)
    with recursive waiting as (
        (
            select x.group_key
            from rowq.grouped x
            where x.part_id = p_part_id
            order by x.part_id, x.group_key, x.message_id
            limit 1
        )
        union all
        select n.group_key
        from waiting w
        cross join lateral (
            select x.group_key
            from rowq.grouped x
            where x.part_id = p_part_id
              and x.group_key > w.group_key
            order by x.part_id, x.group_key, x.message_id
            limit 1
        ) n
    )
    select p_part_id, true, clock_timestamp(), w.group_key
    from waiting w;
    if found then
        perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[] /* deferred */);
    end if;
end;
$$;
