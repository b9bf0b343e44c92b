drop procedure if exists rowq.internal_follow_death;

delimiter //
create procedure rowq.internal_follow_death(
    p_part_id int,
    p_dead_id bigint,
    p_owns_transaction boolean,
    inout p_most int,
    inout p_most_looks int,
    inout p_failed longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_follow_death
-- purpose   Let the messages go on that wait for a dead one and do not mind; those that fail with it are added to p_failed, as internal_unblock returns them. p_most and p_most_looks are as for internal_free_successors.
-- promise   P27
-- locks     successor rows; as internal_unblock; new recheck rows
-- differs   part of internal_follow_deaths on PostgreSQL
    declare v_ids, v_again, v_some longtext;

    select json_arrayagg(h.message_id) into v_ids
    from (
        select s.message_id
        from rowq.successor s force index (primary)
        straight_join rowq.blocked b force index (primary)
            on b.part_id = s.part_id
           and b.message_id = s.message_id
        where s.part_id = p_part_id
          and s.predecessor_id = p_dead_id
          and b.on_dead in ('continue', 'fail')
        order by s.part_id, s.predecessor_id, s.message_id
        limit p_most
    ) h;
    set p_most = p_most - coalesce(json_length(v_ids), 0);
    if v_ids is not null then
        delete s
        from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.successor s force index (primary)
            on s.part_id = p_part_id
           and s.predecessor_id = p_dead_id
           and s.message_id = j.message_id;
        call rowq.internal_unblock(
            p_part_id, v_ids, null, p_owns_transaction, p_most_looks, v_again, v_some
        );
        if v_again is not null then
            call rowq.internal_recheck_later(p_part_id, v_again, null, false);
        end if;
        if v_some is not null then
            set p_failed = if(
                p_failed is null, v_some, json_merge_preserve(p_failed, v_some)
            );
        end if;
    end if;
    if p_most = 0 then
        call rowq.internal_recheck_later(p_part_id, null, json_array(p_dead_id + 0), true);
    end if;
end//
delimiter ;
