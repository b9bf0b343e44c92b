function internal_count_messages(p_part_id in number, p_limit in number)
return rowq_count
is
-- routine   internal_count_messages
-- purpose   Count the messages of a queue by where they are, each up to p_limit.
-- promise   P13
-- differs   PostgreSQL counts in queue_stats itself
    v_count rowq_count := rowq_count(p_part_id, 0, 0, 0, 0, 0, null);
begin
    -- Count from the first row and not from the floor, so that messages that were committed late
    -- count too.
    select count(*) into v_count.ready_count
    from (
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.delayed_count
    from (
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.leased_count
    from (
        select /*+ index_rs_asc(l rowq_leased_pk) */ l.place
        from rowq_leased l
        where l.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.dead_count
    from (
        select /*+ index_rs_asc(d rowq_dead_pk) */ d.message_id
        from rowq_dead d
        where d.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.blocked_count
    from (
        select /*+ index_rs_asc(g rowq_grouped_pk) */ g.message_id
        from rowq_grouped g
        where g.part_id = p_part_id
        union all
        select /*+ index_rs_asc(b rowq_blocked_pk) */ b.message_id
        from rowq_blocked b
        where b.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    v_count.oldest_seconds := internal_seconds_since(
        internal_oldest_ready(p_part_id), sys_extract_utc(systimestamp)
    );
    return v_count;
end internal_count_messages;
