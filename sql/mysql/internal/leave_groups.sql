drop procedure if exists rowq.internal_leave_groups;

delimiter //
create procedure rowq.internal_leave_groups(
    p_part_id int,
    p_ties longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_leave_groups
-- purpose   Pass on the tokens of messages that have ended: [message_id, group key in hex or null]; leave to maintain those that cannot be passed on now.
-- promise   P22 P24
-- locks     as internal_pass_group; new ready and recheck rows
    declare v_group_key varbinary(800);
    declare v_pause double;
    declare v_is_left boolean;
    declare v_is_end boolean default false;
    declare v_next, v_ready longtext;
    -- A cursor reads the list once: a look at its n-th element reads all those before it.
    declare each_token cursor for
        select unhex(j.group_key)
        from json_table(
            p_ties,
            '$[*]' columns (place for ordinality, group_key varchar(1600) path '$[1]')
        ) j
        where j.group_key is not null
        order by j.place;
    declare continue handler for not found set v_is_end = true;

    open each_token;
    tokens: loop
        fetch each_token into v_group_key;
        if v_is_end then
            leave tokens;
        end if;
        call rowq.internal_pass_group(
            p_part_id, v_group_key, false, p_owns_transaction, v_next, v_is_left
        );
        if v_next is not null then
            set v_ready = concat_ws(',', v_ready, v_next);
        end if;
        if v_is_left then
            select q.group_pause_seconds into v_pause
            from rowq.queue q
            where q.part_id = p_part_id;
            insert into rowq.recheck (part_id, due_at, recheck_id, group_key)
            values (
                p_part_id, utc_timestamp(6) + interval round(v_pause * 1000000) microsecond,
                uuid_short() & 9007199254740991, v_group_key
            );
        end if;
        set v_is_end = false;
    end loop;
    close each_token;

    if v_ready is not null then
        call rowq.internal_push_ready(p_part_id, concat('[', v_ready, ']'));
    end if;
end//
delimiter ;
