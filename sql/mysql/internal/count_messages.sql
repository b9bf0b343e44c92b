drop procedure if exists rowq.internal_count_messages;

delimiter //
create procedure rowq.internal_count_messages(
    p_part_id int,
    p_limit int,
    out p_ready bigint,
    out p_delayed bigint,
    out p_leased bigint,
    out p_dead bigint,
    out p_blocked bigint
)
sql security definer
reads sql data
begin
-- routine   internal_count_messages
-- purpose   Count the messages of a queue by where they are, each up to p_limit.
-- promise   P13
-- differs   PostgreSQL counts in queue_stats itself
    -- Count from the first row and not from the floor, so that messages that were committed late
    -- count too.
    select count(*) into p_ready
    from (
        select r.attempt
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.message_id > 0
        limit p_limit
    ) h;
    select count(*) into p_delayed
    from (
        select d.attempt
        from rowq.delayed d force index (primary)
        where d.part_id = p_part_id
          and d.message_id > 0
        limit p_limit
    ) h;
    select least(
               coalesce(sum(coalesce(json_length(h.messages), h.last_id - h.first_id + 1)), 0),
               p_limit
           )
    into p_leased
    from (
        select c.messages, c.first_id, c.last_id
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id > 0
        limit p_limit
    ) h;
    select count(*) into p_dead
    from (
        select d.attempt
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
        limit p_limit
    ) h;
    select count(*) into p_blocked
    from (
        (
            select g.lane
            from rowq.grouped g force index (primary)
            where g.part_id = p_part_id
              and g.message_id > 0
            limit p_limit
        )
        union all
        (
            select b.lane
            from rowq.blocked b force index (primary)
            where b.part_id = p_part_id
            limit p_limit
        )
        limit p_limit
    ) h;
end//
delimiter ;
