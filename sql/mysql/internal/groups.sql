-- Groups: at most group_limit messages of one group_key in work.
--
-- The right to be ready, leased or delayed for a retry is a slot, a row of message_group. A message
-- without one waits in grouped, where dequeue never looks. The call that ends a message passes its
-- slot to the group's next message, or deletes it, in the same transaction. So a slot cannot leak,
-- and groups take turns. A producer whose message joins the group locks its slots until its
-- transaction ends, so the last one is not deleted while a message is coming. If a slot cannot be
-- passed on now, a row of recheck defers that to maintain: no worker waits for a producer.
--
-- At REPEATABLE READ a call cannot see that a group is empty, so in the caller's transaction a slot
-- is passed on, but never deleted.
--
--   alter_queue -> hint_groups
--   reset -> rejoin_groups -> join_groups
--   store_grouped -> join_groups -> enter_group
--   cut_ties, push_dead -> leave_groups -> pass_group
--   recheck -> pass_group
--   purge_grouped, pop_expired, pop_waiting -> pop_grouped
--   promote_grouped, try_unblock -> try_enter_group -> enter_group
--   recheck -> widen_group -> try_enter_group, leave_groups
--
-- Writes grouped, message_group, recheck. Only reads queue.

drop procedure if exists rowq.internal_hint_groups;

delimiter //
create procedure rowq.internal_hint_groups(p_part_id int)
sql security definer
modifies sql data
begin
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- locks     new recheck rows
    declare v_group_key, v_next varbinary(800) default '';
    declare v_lane smallint;

    -- Go from group to group and not from message to message.
    while v_next is not null do
        set v_next = null;
        select g.group_key, g.lane into v_next, v_lane
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key > v_group_key
          and g.group_key < x'FF'
        order by g.part_id, g.group_key, g.message_id
        limit 1;
        if v_next is not null then
            set v_group_key = v_next;
            insert into rowq.recheck (part_id, due_at, recheck_id, group_key, is_hint)
            values (
                p_part_id, utc_timestamp(6), uuid_short() & 9007199254740991, v_group_key, true
            );
        end if;
    end while;
end//
delimiter ;

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
-- purpose   Let messages that were dead join their groups, but for those that have kept their tokens: [message_id, lane, attempt, holds_group]; return the ids that wait there, the others are for the caller to make ready.
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
-- purpose   Let messages join their groups: [message_id, lane, attempt, group key in hex or null]; return the ids that wait there, the others are for the caller to make ready.
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
-- purpose   Take a token of a group: true with one, false where the message has to wait behind others.
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
-- purpose   Pass on the tokens of messages that have ended: [message_id, group key in hex or null]; leave to maintain those that cannot be passed on now.
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
-- purpose   Pass one token of a group on to its next message, or give it back. p_next is that message as [message_id, lane, attempt], for the caller to make ready; p_is_left says that nothing can be done now.
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

drop procedure if exists rowq.internal_pop_grouped;

delimiter //
create procedure rowq.internal_pop_grouped(
    p_part_id int,
    p_seen longtext,
    out p_messages longtext,
    out p_ids longtext
)
sql security definer
modifies sql data
begin
-- purpose   Take messages out of their groups, by their ids; return those that nobody holds, and their ids.
-- locks     grouped rows, passing over locked ones
-- differs   no such helper elsewhere: part of purge_queue and internal_pop_waiting
    declare v_rest, v_slice, v_keys longtext;

    -- Keys are read where they are needed, because no text holds those of many messages.
    select json_arrayagg(json_array(h.message_id, h.lane, 0)), json_arrayagg(h.message_id)
    into p_messages, p_ids
    from (
        select g.message_id, g.lane
        from (
            select m.message_id, m.group_key
            from json_table(p_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
        ) k
        straight_join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = k.group_key
           and g.message_id = k.message_id
        for update /*!80000 of g */ skip locked
    ) h;
    -- Read the keys before the delete, which would lock the rows of message, too, and wait for a
    -- producer that has just named one of them.
    set v_rest = p_messages;
    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        select json_arrayagg(json_array(m.message_id, hex(m.group_key))) into v_keys
        from json_table(v_slice, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        delete g
        from json_table(
            v_keys,
            '$[*]' columns (message_id bigint path '$[0]', group_key varchar(1600) path '$[1]')
        ) j
        straight_join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = unhex(j.group_key)
           and g.message_id = j.message_id;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_try_enter_group;

delimiter //
create procedure rowq.internal_try_enter_group(
    p_part_id int,
    p_group_key varbinary(800),
    p_owns_transaction boolean,
    out p_has_token boolean
)
sql security definer
modifies sql data
begin
-- purpose   Do what internal_enter_group does, but return null where that takes longer than a moment.
-- locks     as internal_enter_group, not waited for on MariaDB, for a second at most on MySQL
-- differs   the shortest wait that MySQL has is a second
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare exit handler for 1205
    begin
        set session innodb_lock_wait_timeout = v_patience;
        if @@innodb_rollback_on_timeout then
            resignal;
        end if;
        set p_has_token = null;
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_patience;
        resignal;
    end;
    set p_has_token = null;

    if p_owns_transaction or
       /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */
           in ('READ-COMMITTED', 'READ-UNCOMMITTED') then
        set session innodb_lock_wait_timeout = /*!80000 1 */ /*M!100600 0 */;
        call rowq.internal_enter_group(p_part_id, p_group_key, p_has_token);
        set session innodb_lock_wait_timeout = v_patience;
    end if;
end//
delimiter ;

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
-- purpose   Give a group whose limit was raised its new tokens; p_is_done is false where another look is needed.
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
