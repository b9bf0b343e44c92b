drop procedure if exists rowq.internal_enter_group;

delimiter //
create procedure rowq.internal_enter_group(
    p_part_id int,
    p_group_key varbinary(800),
    out p_has_token boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_enter_group
-- purpose   Take a token of a group: true with one, false where the message has to wait behind others.
-- promise   P21 P22 P24
-- locks     a new message_group row, or the group's, shared; waits for who opens or closes it
    declare v_limit, v_newest, v_no int;
    declare v_is_full boolean;
    declare v_tokens longtext;
    set p_has_token = null;

    select q.group_limit, (
               select json_arrayagg(t.token_no)
               from rowq.message_group t force index (primary)
               where t.part_id = p_part_id
                 and t.group_key = p_group_key
           )
    into v_limit, v_tokens
    from rowq.queue q
    where q.part_id = p_part_id;
    set v_tokens = coalesce(v_tokens, '[]');

    looks: loop
        set v_is_full = json_length(v_tokens) >= v_limit;
        if v_is_full then
            -- Hold the tokens to the end of the transaction: whoever would give the last one back
            -- knows by this that a message is coming. The look was without a lock, because two that
            -- wait with a lock for the same number meet a deadlock.
            select json_arrayagg(h.token_no) into v_tokens
            from (
                select t.token_no
                from json_table(v_tokens, '$[*]' columns (token_no smallint path '$')) j
                straight_join rowq.message_group t force index (primary)
                    on t.part_id = p_part_id
                   and t.group_key = p_group_key
                   and t.token_no = j.token_no
                /*!80000 for share of t */ /*M!100600 lock in share mode */
            ) h;
            set v_tokens = coalesce(v_tokens, '[]'), p_has_token = false;
        else
            -- Take the first free number. The count keeps a limit that was lowered.
            set v_no = 1, p_has_token = true;
            while json_contains(v_tokens, concat(v_no)) do
                set v_no = v_no + 1;
            end while;
            begin
                declare continue handler for 1062 set p_has_token = false;
                insert into rowq.message_group (part_id, group_key, token_no)
                values (p_part_id, p_group_key, v_no);
            end;
            if not p_has_token then
                set v_tokens = json_array_append(v_tokens, '$', v_no);
            elseif v_limit = 1 then
                -- Any limit leaves room for one.
                leave looks;
            end if;
        end if;

        -- Each of these may have waited, and an alter_queue that has come meanwhile does not see
        -- this message. So what counts is the limit that is read after them.
        select q.group_limit into v_newest
        from rowq.queue q
        where q.part_id = p_part_id;
        if p_has_token and v_newest >= v_limit
           or v_is_full and json_length(v_tokens) >= v_newest then
            leave looks;
        end if;
        -- Another one took the number, a token was given back in between, or the limit was changed:
        -- try once more.
        if p_has_token then
            delete from rowq.message_group
            where part_id = p_part_id
              and group_key = p_group_key
              and token_no = v_no;
        end if;
        set v_limit = v_newest;
    end loop;
end//
delimiter ;
