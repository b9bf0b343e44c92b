drop procedure if exists rowq.internal_rejoin_groups;

delimiter //
create procedure rowq.internal_rejoin_groups(
    p_part_id int,
    p_messages longtext,
    out p_waiting longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_rejoin_groups
-- purpose   Let messages that were dead join their groups, but for those that have kept their tokens: [message_id, lane, attempt, holds_group]; return the ids that wait there, the others are for the caller to make ready.
-- promise   P21 P22 P36
-- locks     as internal_join_groups; new expiry rows
-- differs   part of reset on PostgreSQL
    declare v_rest, v_slice, v_joining, v_some longtext;
    set p_waiting = null;

    -- Go in the order of the keys, as internal_join_groups does, and slice by slice, because no
    -- text holds the keys of many messages.
    select json_arrayagg(json_array(h.message_id, h.lane, 0)) into v_rest
    from (
        select j.message_id, j.lane
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                holds_group tinyint path '$[3]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.group_key is not null
          and not j.holds_group
        order by m.group_key, j.message_id
        limit 1000000
    ) h;
    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        select json_arrayagg(json_array(j.message_id, j.lane, 0, hex(m.group_key))) into v_joining
        from json_table(
            v_slice, '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        call rowq.internal_join_groups(p_part_id, v_joining, v_some);
        call rowq.internal_note_expiry(p_part_id, v_slice, null);
        if v_some is not null then
            set p_waiting = if(p_waiting is null, v_some, json_merge_preserve(p_waiting, v_some));
        end if;
    end while;
end//
delimiter ;
