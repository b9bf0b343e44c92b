procedure internal_follow_deaths(p_part_id in number, p_dead_ids in rowq_ids)
is
-- routine   internal_follow_deaths
-- purpose   Let what waits for dead messages do as it asked, and so on down the tree.
-- promise   P27
-- locks     message rows, tried only; as internal_follow_death; new recheck rows
    -- A long tree dies in steps, and a wide one too, so that no transaction grows without end.
    c_most constant pls_integer := 1000;
    v_count   pls_integer := 0;
    v_dead    rowq_ids := p_dead_ids;
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_awaited rowq_ids;
    v_failed  rowq_ids;
begin
    while v_dead.count > 0 loop
        -- Where a row is held, a producer is adding a message that waits: look again when it is
        -- there.
        internal_lock_messages(p_part_id, v_dead, v_locked, v_held);
        if v_held.count > 0 then
            internal_recheck_later(p_part_id, null, v_held, 1);
        end if;
        v_awaited := internal_awaited_of(p_part_id, v_locked);
        v_failed := rowq_ids();
        for i in 1 .. v_awaited.count loop
            if v_count + v_failed.count > c_most then
                internal_recheck_later(p_part_id, null, rowq_ids(v_awaited(i)), 1);
            else
                internal_follow_death(p_part_id, v_awaited(i), v_failed);
            end if;
        end loop;
        v_count := v_count + v_failed.count;
        v_dead := v_failed;
    end loop;
end internal_follow_deaths;
