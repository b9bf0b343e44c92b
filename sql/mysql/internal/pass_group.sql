drop procedure if exists rowq.internal_pass_group;

delimiter //
create procedure rowq.internal_pass_group(
    p_part_id int,
    p_group_key varbinary(800),
    p_is_over boolean,
    p_owns_transaction boolean,
    out p_next varchar(60),
    out p_is_left boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_pass_group
-- purpose   Pass one token of a group on to its next message, or give it back. p_next is that message as [message_id, lane, attempt], for the caller to make ready; p_is_left says that nothing can be done now.
-- promise   P21 P22 P23 P24
-- locks     grouped and message_group rows, tried only
    declare v_limit, v_lowest_no, v_highest_no, v_token_no int;
    declare v_pause double;
    declare v_first_id, v_message_id bigint;
    declare v_lane smallint;

    set p_next = null, p_is_left = false;

    select max(q.group_limit), max(q.group_pause_seconds), min(t.token_no), max(t.token_no)
    into v_limit, v_pause, v_lowest_no, v_highest_no
    from rowq.queue q
    left join rowq.message_group t force index (primary)
        on t.part_id = q.part_id
       and t.group_key = p_group_key
    where q.part_id = p_part_id;

    token: begin
        if v_pause > 0 and not p_is_over then
            set p_is_left = true;
            leave token;
        end if;

        -- To give a token back wants a look that sees what was committed since the one before. In
        -- the caller's transaction nobody knows whether it would, because the isolation level of
        -- one transaction stands in no variable.
        if p_owns_transaction and v_highest_no > v_limit and v_lowest_no <= v_limit then
            -- A token beyond a limit that was lowered is given back.
            select t.token_no into v_token_no
            from rowq.message_group t force index (primary)
            where t.part_id = p_part_id
              and t.group_key = p_group_key
              and t.token_no > v_limit
            order by t.part_id, t.group_key, t.token_no
            limit 1
            for update skip locked;
            if v_token_no is not null then
                delete from rowq.message_group
                where part_id = p_part_id
                  and group_key = p_group_key
                  and token_no = v_token_no;
                leave token;
            end if;
        end if;

        looks: loop
            -- Find the first message that waits without locks, then lock it by its whole key, so
            -- that no gap is locked.
            set v_first_id = null, v_message_id = null;
            select g.message_id, g.lane into v_first_id, v_lane
            from rowq.grouped g force index (primary)
            where g.part_id = p_part_id
              and g.group_key = p_group_key
            order by g.part_id, g.group_key, g.message_id
            limit 1;
            if v_first_id is not null then
                leave looks;
            elseif not p_owns_transaction then
                set p_is_left = true;
                leave token;
            elseif v_token_no is not null then
                delete from rowq.message_group
                where part_id = p_part_id
                  and group_key = p_group_key
                  and token_no = v_token_no;
                leave token;
            end if;

            -- Nobody waits. Where a token can be locked, nobody is coming either, and who was
            -- coming a moment ago is there by now, so look once more.
            select t.token_no into v_token_no
            from rowq.message_group t force index (primary)
            where t.part_id = p_part_id
              and t.group_key = p_group_key
            order by t.part_id desc, t.group_key desc, t.token_no desc
            limit 1
            for update skip locked;
            if v_token_no is null then
                set p_is_left = true;
                leave token;
            end if;
        end loop;

        select g.message_id into v_message_id
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key = p_group_key
          and g.message_id = v_first_id
        for update skip locked;
        if v_message_id is null and p_owns_transaction and v_limit > 1 then
            -- With a limit of 1 nobody is taken instead, because a message that is being cancelled
            -- may stay, and must not be overtaken.
            select g.message_id, g.lane into v_message_id, v_lane
            from rowq.grouped g force index (primary)
            where g.part_id = p_part_id
              and g.group_key = p_group_key
              and g.message_id > v_first_id
            order by g.part_id, g.group_key, g.message_id
            limit 1
            for update skip locked;
        end if;
        if v_message_id is null then
            set p_is_left = true;
        else
            delete from rowq.grouped
            where part_id = p_part_id
              and group_key = p_group_key
              and message_id = v_message_id;
            set p_next = concat('[', v_message_id, ',', v_lane, ',0]');
        end if;
    end;
end//
delimiter ;
