drop procedure if exists rowq.internal_free_successors;

delimiter //
create procedure rowq.internal_free_successors(
    p_part_id int,
    p_predecessor_id bigint,
    p_owns_transaction boolean,
    inout p_most int,
    inout p_most_looks int
)
sql security definer
modifies sql data
begin
-- routine   internal_free_successors
-- purpose   Let the messages go on that have waited for this one, which has ended; leave to maintain those that cannot go on now, or are too many. p_most is for how many messages, p_most_looks as for internal_unblock, and then what of these is left.
-- promise   P26
-- locks     successor rows; as internal_let_go; new recheck rows
    declare v_ids, v_again longtext;

    select json_arrayagg(h.message_id) into v_ids
    from (
        select s.message_id
        from rowq.successor s force index (primary)
        where s.part_id = p_part_id
          and s.predecessor_id = p_predecessor_id
        order by s.part_id, s.predecessor_id, s.message_id
        limit p_most
    ) h;
    set p_most = p_most - coalesce(json_length(v_ids), 0);
    -- An old snapshot does not show every message that waits.
    if not p_owns_transaction or p_most = 0 then
        call rowq.internal_recheck_later(
            p_part_id, null, json_array(p_predecessor_id + 0), false
        );
    end if;
    if v_ids is not null then
        delete s
        from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.successor s force index (primary)
            on s.part_id = p_part_id
           and s.predecessor_id = p_predecessor_id
           and s.message_id = j.message_id;
        call rowq.internal_let_go(
            p_part_id, v_ids, p_predecessor_id, p_owns_transaction, p_most_looks, v_again
        );
        if v_again is not null then
            call rowq.internal_recheck_later(p_part_id, v_again, null, false);
        end if;
    end if;
end//
delimiter ;
