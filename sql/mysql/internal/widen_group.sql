drop procedure if exists rowq.internal_widen_group;

delimiter //
create procedure rowq.internal_widen_group(
    p_part_id int,
    p_group_key varbinary(800),
    p_owns_transaction boolean,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_widen_group
-- purpose   Give a group whose limit was raised its new tokens; p_is_done is false where another look is needed.
-- promise   P22 P24
-- locks     as internal_try_enter_group and internal_leave_groups
    declare v_first_id bigint;
    declare v_lane smallint;
    declare v_has_token boolean default true;

    tokens: while v_has_token do
        set v_first_id = null;
        select g.message_id, g.lane into v_first_id, v_lane
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key = p_group_key
        order by g.part_id, g.group_key, g.message_id
        limit 1;
        if v_first_id is null then
            leave tokens;
        end if;
        call rowq.internal_try_enter_group(
            p_part_id, p_group_key, p_owns_transaction, v_has_token
        );
        if v_has_token then
            call rowq.internal_leave_groups(
                p_part_id, json_array(json_array(v_first_id, hex(p_group_key))),
                p_owns_transaction
            );
        end if;
    end while;
    set p_is_done = v_has_token is not null;
end//
delimiter ;
