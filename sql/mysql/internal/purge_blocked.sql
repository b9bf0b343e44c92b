drop procedure if exists rowq.internal_purge_blocked;

delimiter //
create procedure rowq.internal_purge_blocked(
    p_part_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_blocked
-- purpose   Delete up to p_limit messages that wait for others to end; null means all.
-- promise   P15
-- locks     blocked rows, passing over locked ones; message and dedup rows
-- differs   no such helper elsewhere: part of purge_queue
    declare c_step int default 5000;
    declare v_after bigint default 0;
    declare v_step int;
    declare v_seen, v_some, v_ids longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave steps;
        end if;
        -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
        select json_arrayagg(h.message_id), max(h.message_id) into v_seen, v_after
        from (
            select b.message_id, b.lane
            from rowq.blocked b force index (primary)
            where b.part_id = p_part_id
              and b.message_id > v_after
            order by b.part_id, b.message_id
            limit v_step
        ) h;
        if v_seen is null then
            leave steps;
        end if;

        call rowq.internal_pop_blocked(p_part_id, v_seen, v_some, v_ids);
        if v_some is not null then
            call rowq.internal_finish(
                p_part_id, 0, true, v_some, v_ids, null, p_owns_transaction, 'cancelled'
            );
            set p_removed = p_removed + json_length(v_some);
        end if;
    end loop;
end//
delimiter ;
