drop procedure if exists rowq.internal_join_groups;

delimiter //
create procedure rowq.internal_join_groups(
    p_part_id int,
    p_messages longtext,
    out p_waiting longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_join_groups
-- purpose   Let messages join their groups: [message_id, lane, attempt, group key in hex or null]; return the ids that wait there, the others are for the caller to make ready.
-- promise   P21 P22
-- locks     as internal_enter_group, in the order of the keys; new grouped rows
    declare v_message_id bigint;
    declare v_lane smallint;
    declare v_group_key, v_full_key varbinary(800);
    declare v_has_token boolean;
    declare v_is_end boolean default false;
    declare each_message cursor for
        select j.message_id, j.lane, unhex(j.group_key)
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                group_key varchar(1600) path '$[3]'
            )
        ) j
        where j.group_key is not null
        order by j.group_key, j.message_id;
    declare continue handler for not found set v_is_end = true;
    set p_waiting = null;

    open each_message;
    messages: loop
        fetch each_message into v_message_id, v_lane, v_group_key;
        if v_is_end then
            leave messages;
        end if;
        -- A group that is full stays so until the end of this transaction.
        set v_has_token = false;
        if not v_group_key <=> v_full_key then
            call rowq.internal_enter_group(p_part_id, v_group_key, v_has_token);
            set v_is_end = false;
        end if;
        if not v_has_token then
            set v_full_key = v_group_key, p_waiting = concat_ws(',', p_waiting, v_message_id);
            insert into rowq.grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_group_key, v_message_id, v_lane);
        end if;
    end loop;
    close each_message;
    set p_waiting = concat('[', p_waiting, ']');
end//
delimiter ;
