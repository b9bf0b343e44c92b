drop procedure if exists rowq.internal_hint_groups;

delimiter //
create procedure rowq.internal_hint_groups(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_hint_groups
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- promise   P24
-- locks     new recheck rows
    declare v_group_key, v_next varbinary(800) default '';
    declare v_lane smallint;

    -- Go from group to group and not from message to message.
    while v_next is not null do
        set v_next = null;
        select g.group_key, g.lane into v_next, v_lane
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key > v_group_key
          and g.group_key < x'FF'
        order by g.part_id, g.group_key, g.message_id
        limit 1;
        if v_next is not null then
            set v_group_key = v_next;
            insert into rowq.recheck (part_id, due_at, recheck_id, group_key, is_hint)
            values (
                p_part_id, utc_timestamp(6), uuid_short() & 9007199254740991, v_group_key, true
            );
        end if;
    end while;
end//
delimiter ;
