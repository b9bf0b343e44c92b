drop procedure if exists rowq.internal_purge_grouped;

delimiter //
create procedure rowq.internal_purge_grouped(
    p_part_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_grouped
-- purpose   Delete up to p_limit messages that wait in groups; null means all.
-- promise   P15
-- locks     grouped rows, passing over locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_after varbinary(800) default '';
    declare v_after_id bigint default 0;
    declare v_step int;
    declare v_seen, v_some, v_ids longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave steps;
        end if;
        -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
        select json_arrayagg(h.message_id) into v_seen
        from (
            select g.group_key, g.message_id, g.lane
            from rowq.grouped g force index (primary)
            where g.part_id = p_part_id
              and g.group_key >= v_after
              and g.group_key < x'FF'
              and (g.group_key > v_after or g.message_id > v_after_id)
            order by g.part_id, g.group_key, g.message_id
            limit v_step
        ) h;
        if v_seen is null then
            leave steps;
        end if;
        set v_after_id = json_extract(v_seen, concat('$[', json_length(v_seen) - 1, ']'));
        select m.group_key into v_after
        from rowq.message m force index (primary)
        where m.message_id = v_after_id;

        call rowq.internal_pop_grouped(p_part_id, v_seen, v_some, v_ids);
        if v_some is not null then
            call rowq.internal_finish(
                p_part_id, 0, true, v_some, v_ids, null, p_owns_transaction, 'cancelled'
            );
            set p_removed = p_removed + json_length(v_some);
        end if;
    end loop;
end//
delimiter ;
