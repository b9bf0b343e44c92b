-- Groups: at most group_limit messages of one group_key in work.
--
-- A message needs a slot, a row of group_slot, to be ready, leased or delayed for a retry. A
-- message without a slot waits in group_waiting, which dequeue does not read. The call that ends a
-- message passes its slot to the group's next message, or deletes it, in the same transaction. So
-- slots cannot leak, and groups take turns. A producer that finds the group full locks its slots
-- until its transaction ends, so that the last slot is not deleted before that. No worker waits
-- for a producer: if a slot cannot be passed on now, a row of deferred leaves it to maintain.
--
-- In the caller's transaction a slot is passed on, but never deleted: under REPEATABLE READ a call
-- cannot see that a group is empty.
--
--   alter_queue -> defer_group_checks
--   reset -> rejoin_groups -> join_groups
--   store_group_waiting -> join_groups -> take_group_slot
--   release_links, push_dead -> release_group_slots -> pass_group_slot
--   run_deferred -> pass_group_slot
--   purge_group_waiting, pop_expired, pop_waiting -> pop_group_waiting
--   promote_group_waiting, try_unblock -> try_take_group_slot -> take_group_slot
--   run_deferred -> add_group_slots -> try_take_group_slot, release_group_slots
--
-- Writes group_waiting, group_slot, deferred. Only reads queue.

drop procedure if exists rowq.internal_defer_group_checks;

delimiter //
create procedure rowq.internal_defer_group_checks(p_queue_id int)
sql security definer
modifies sql data
begin
-- purpose   Defer a check for new slots for each group in which messages wait.
-- locks     new deferred rows
    declare v_group_key, v_next varbinary(800) default '';
    declare v_lane smallint;

    -- Skip from group to group, so that not every message is read.
    while v_next is not null do
        set v_next = null;
        select g.group_key, g.lane into v_next, v_lane
        from rowq.group_waiting g force index (primary)
        where g.queue_id = p_queue_id
          and g.group_key > v_group_key
          and g.group_key < x'FF'
        order by g.queue_id, g.group_key, g.message_id
        limit 1;
        if v_next is not null then
            set v_group_key = v_next;
            insert into rowq.deferred (queue_id, due_at, deferred_id, group_key, is_hint)
            values (
                p_queue_id, utc_timestamp(6), uuid_short() & 9007199254740991, v_group_key, true
            );
        end if;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_rejoin_groups;

delimiter //
create procedure rowq.internal_rejoin_groups(
    p_queue_id int,
    p_messages longtext,
    out p_waiting longtext
)
sql security definer
modifies sql data
begin
-- purpose   Let messages that were dead join their groups; return the ids of those that wait.
-- locks     as internal_join_groups; new expiry rows
-- p_messages: [message_id, lane, attempt, holds_slot]; a message that holds its slot does not join.
    declare v_rest, v_slice, v_joining, v_some longtext;
    set p_waiting = null;

    -- Join in the order of the keys, as internal_join_groups does, and slice by slice, because no
    -- text holds the keys of many messages.
    select json_arrayagg(json_array(h.message_id, h.lane, 0)) into v_rest
    from (
        select j.message_id, j.lane
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                holds_slot tinyint path '$[3]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.group_key is not null
          and not j.holds_slot
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
        call rowq.internal_join_groups(p_queue_id, v_joining, v_some);
        call rowq.internal_record_expiry(p_queue_id, v_slice, null);
        if v_some is not null then
            set p_waiting = if(p_waiting is null, v_some, json_merge_preserve(p_waiting, v_some));
        end if;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_join_groups;

delimiter //
create procedure rowq.internal_join_groups(
    p_queue_id int,
    p_messages longtext,
    out p_waiting longtext
)
sql security definer
modifies sql data
begin
-- purpose   Let messages join their groups; return the ids of those that wait there.
-- locks     as internal_take_group_slot, in the order of the keys; new group_waiting rows
-- p_messages: [message_id, lane, attempt, group key in hex or null].
    declare v_message_id bigint;
    declare v_lane smallint;
    declare v_group_key, v_full_key varbinary(800);
    declare v_has_slot boolean;
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
        -- A full group stays full until this transaction ends.
        set v_has_slot = false;
        if not v_group_key <=> v_full_key then
            call rowq.internal_take_group_slot(p_queue_id, v_group_key, v_has_slot);
            set v_is_end = false;
        end if;
        if not v_has_slot then
            set v_full_key = v_group_key, p_waiting = concat_ws(',', p_waiting, v_message_id);
            insert into rowq.group_waiting (queue_id, group_key, message_id, lane)
            values (p_queue_id, v_group_key, v_message_id, v_lane);
        end if;
    end loop;
    close each_message;
    set p_waiting = concat('[', p_waiting, ']');
end//
delimiter ;

drop procedure if exists rowq.internal_take_group_slot;

delimiter //
create procedure rowq.internal_take_group_slot(
    p_queue_id int,
    p_group_key varbinary(800),
    out p_has_slot boolean
)
sql security definer
modifies sql data
begin
-- purpose   Take a slot of a group; return false if the message has to wait.
-- locks     a new group_slot row, or the group's rows, shared; waits for sessions that add or
--           delete them
    declare v_limit, v_newest, v_no int;
    declare v_is_full boolean;
    declare v_slots longtext;
    set p_has_slot = null;

    select q.group_limit, (
               select json_arrayagg(t.slot_no)
               from rowq.group_slot t force index (primary)
               where t.queue_id = p_queue_id
                 and t.group_key = p_group_key
           )
    into v_limit, v_slots
    from rowq.queue q
    where q.queue_id = p_queue_id;
    set v_slots = coalesce(v_slots, '[]');

    attempts: loop
        set v_is_full = json_length(v_slots) >= v_limit;
        if v_is_full then
            -- Lock the slots until the transaction ends, so that no session deletes the last one
            -- while this message joins. The first read is without a lock: two locking reads of the
            -- same key that both wait to insert it would deadlock.
            select json_arrayagg(h.slot_no) into v_slots
            from (
                select t.slot_no
                from json_table(v_slots, '$[*]' columns (slot_no smallint path '$')) j
                straight_join rowq.group_slot t force index (primary)
                    on t.queue_id = p_queue_id
                   and t.group_key = p_group_key
                   and t.slot_no = j.slot_no
                /*!80000 for share of t */ /*M!100600 lock in share mode */
            ) h;
            set v_slots = coalesce(v_slots, '[]'), p_has_slot = false;
        else
            -- Add the first free slot. The count respects a limit that was lowered.
            set v_no = 1, p_has_slot = true;
            while json_contains(v_slots, concat(v_no)) do
                set v_no = v_no + 1;
            end while;
            begin
                declare continue handler for 1062 set p_has_slot = false;
                insert into rowq.group_slot (queue_id, group_key, slot_no)
                values (p_queue_id, p_group_key, v_no);
            end;
            if not p_has_slot then
                set v_slots = json_array_append(v_slots, '$', v_no);
            elseif v_limit = 1 then
                -- Every limit allows one slot.
                leave attempts;
            end if;
        end if;

        -- The statements above may have waited, and an alter_queue that ran then did not see this
        -- message. Read the limit again.
        select q.group_limit into v_newest
        from rowq.queue q
        where q.queue_id = p_queue_id;
        if p_has_slot and v_newest >= v_limit
           or v_is_full and json_length(v_slots) >= v_newest then
            leave attempts;
        end if;
        -- Another session added this slot or deleted one, or the limit was changed: retry.
        if p_has_slot then
            delete from rowq.group_slot
            where queue_id = p_queue_id
              and group_key = p_group_key
              and slot_no = v_no;
        end if;
        set v_limit = v_newest;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_release_group_slots;

delimiter //
create procedure rowq.internal_release_group_slots(
    p_queue_id int,
    p_links longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- purpose   Pass on the slots of ended messages; defer those that cannot be passed now.
-- locks     as internal_pass_group_slot; new ready and deferred rows
    declare v_group_key varbinary(800);
    declare v_pause double;
    declare v_is_left boolean;
    declare v_is_end boolean default false;
    declare v_next, v_ready longtext;
    -- A cursor reads the list once; reading its n-th element reads all before it.
    declare each_slot cursor for
        select unhex(j.group_key)
        from json_table(
            p_links,
            '$[*]' columns (position for ordinality, group_key varchar(1600) path '$[1]')
        ) j
        where j.group_key is not null
        order by j.position;
    declare continue handler for not found set v_is_end = true;

    open each_slot;
    slots: loop
        fetch each_slot into v_group_key;
        if v_is_end then
            leave slots;
        end if;
        call rowq.internal_pass_group_slot(
            p_queue_id, v_group_key, false, p_owns_transaction, v_next, v_is_left
        );
        if v_next is not null then
            set v_ready = concat_ws(',', v_ready, v_next);
        end if;
        if v_is_left then
            select q.group_pause_seconds into v_pause
            from rowq.queue q
            where q.queue_id = p_queue_id;
            insert into rowq.deferred (queue_id, due_at, deferred_id, group_key)
            values (
                p_queue_id, utc_timestamp(6) + interval round(v_pause * 1000000) microsecond,
                uuid_short() & 9007199254740991, v_group_key
            );
        end if;
        set v_is_end = false;
    end loop;
    close each_slot;

    if v_ready is not null then
        call rowq.internal_push_ready(p_queue_id, concat('[', v_ready, ']'));
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_pass_group_slot;

delimiter //
create procedure rowq.internal_pass_group_slot(
    p_queue_id int,
    p_group_key varbinary(800),
    p_is_over boolean,
    p_owns_transaction boolean,
    out p_next varchar(60),
    out p_is_left boolean
)
sql security definer
modifies sql data
begin
-- purpose   Pass one slot of a group to its next message, or delete it.
-- locks     group_waiting and group_slot rows, skipped if locked
-- p_next: [message_id, lane, attempt], for the caller to make ready.
    declare v_limit, v_lowest_no, v_highest_no, v_slot_no int;
    declare v_pause double;
    declare v_first_id, v_message_id bigint;
    declare v_lane smallint;

    set p_next = null, p_is_left = false;

    select max(q.group_limit), max(q.group_pause_seconds), min(t.slot_no), max(t.slot_no)
    into v_limit, v_pause, v_lowest_no, v_highest_no
    from rowq.queue q
    left join rowq.group_slot t force index (primary)
        on t.queue_id = q.queue_id
       and t.group_key = p_group_key
    where q.queue_id = p_queue_id;

    slot: begin
        if v_pause > 0 and not p_is_over then
            set p_is_left = true;
            leave slot;
        end if;

        -- Deleting a slot requires a read newer than the last one. In the caller's transaction the
        -- isolation level is unknown, so defer it.
        if p_owns_transaction and v_highest_no > v_limit and v_lowest_no <= v_limit then
            -- The limit was lowered: delete a slot above it.
            select t.slot_no into v_slot_no
            from rowq.group_slot t force index (primary)
            where t.queue_id = p_queue_id
              and t.group_key = p_group_key
              and t.slot_no > v_limit
            order by t.queue_id, t.group_key, t.slot_no
            limit 1
            for update skip locked;
            if v_slot_no is not null then
                delete from rowq.group_slot
                where queue_id = p_queue_id
                  and group_key = p_group_key
                  and slot_no = v_slot_no;
                leave slot;
            end if;
        end if;

        checks: loop
            -- Find the first waiting message without locks, then lock it by its whole key, so that
            -- no gap is locked.
            set v_first_id = null, v_message_id = null;
            select g.message_id, g.lane into v_first_id, v_lane
            from rowq.group_waiting g force index (primary)
            where g.queue_id = p_queue_id
              and g.group_key = p_group_key
            order by g.queue_id, g.group_key, g.message_id
            limit 1;
            if v_first_id is not null then
                leave checks;
            elseif not p_owns_transaction then
                set p_is_left = true;
                leave slot;
            elseif v_slot_no is not null then
                delete from rowq.group_slot
                where queue_id = p_queue_id
                  and group_key = p_group_key
                  and slot_no = v_slot_no;
                leave slot;
            end if;

            -- The group is empty. If a slot can be locked, no producer is joining, and those that
            -- were have committed: check once more.
            select t.slot_no into v_slot_no
            from rowq.group_slot t force index (primary)
            where t.queue_id = p_queue_id
              and t.group_key = p_group_key
            order by t.queue_id desc, t.group_key desc, t.slot_no desc
            limit 1
            for update skip locked;
            if v_slot_no is null then
                set p_is_left = true;
                leave slot;
            end if;
        end loop;

        select g.message_id into v_message_id
        from rowq.group_waiting g force index (primary)
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id = v_first_id
        for update skip locked;
        if v_message_id is null and p_owns_transaction and v_limit > 1 then
            -- With a limit of 1 no other message is taken: a message that is being cancelled may
            -- stay, and must not be overtaken.
            select g.message_id, g.lane into v_message_id, v_lane
            from rowq.group_waiting g force index (primary)
            where g.queue_id = p_queue_id
              and g.group_key = p_group_key
              and g.message_id > v_first_id
            order by g.queue_id, g.group_key, g.message_id
            limit 1
            for update skip locked;
        end if;
        if v_message_id is null then
            set p_is_left = true;
        else
            delete from rowq.group_waiting
            where queue_id = p_queue_id
              and group_key = p_group_key
              and message_id = v_message_id;
            set p_next = concat('[', v_message_id, ',', v_lane, ',0]');
        end if;
    end;
end//
delimiter ;

drop procedure if exists rowq.internal_pop_group_waiting;

delimiter //
create procedure rowq.internal_pop_group_waiting(
    p_queue_id int,
    p_seen longtext,
    out p_messages longtext,
    out p_ids longtext
)
sql security definer
modifies sql data
begin
-- purpose   Remove unlocked messages from their groups, by their ids; return them and their ids.
-- locks     group_waiting rows, skipping locked ones
    declare v_rest, v_slice, v_keys longtext;

    -- Read each key where it is used: no text holds the keys of many messages.
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
        straight_join rowq.group_waiting g force index (primary)
            on g.queue_id = p_queue_id
           and g.group_key = k.group_key
           and g.message_id = k.message_id
        for update /*!80000 of g */ skip locked
    ) h;
    -- Read the keys before the delete, which would lock the rows of message and wait for a producer
    -- that has just named one as a predecessor.
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
        straight_join rowq.group_waiting g force index (primary)
            on g.queue_id = p_queue_id
           and g.group_key = unhex(j.group_key)
           and g.message_id = j.message_id;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_try_take_group_slot;

delimiter //
create procedure rowq.internal_try_take_group_slot(
    p_queue_id int,
    p_group_key varbinary(800),
    p_owns_transaction boolean,
    out p_has_slot boolean
)
sql security definer
modifies sql data
begin
-- purpose   Take a slot as internal_take_group_slot does; return null instead of waiting.
-- locks     as internal_take_group_slot, but does not wait on MariaDB, and waits up to 1 s on MySQL
-- differs   1 s is MySQL's shortest wait
    declare v_timeout bigint default @@session.innodb_lock_wait_timeout;
    declare exit handler for 1205
    begin
        set session innodb_lock_wait_timeout = v_timeout;
        if @@innodb_rollback_on_timeout then
            resignal;
        end if;
        set p_has_slot = null;
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_timeout;
        resignal;
    end;
    set p_has_slot = null;

    if p_owns_transaction or
       /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */
           in ('READ-COMMITTED', 'READ-UNCOMMITTED') then
        set session innodb_lock_wait_timeout = /*!80000 1 */ /*M!100600 0 */;
        call rowq.internal_take_group_slot(p_queue_id, p_group_key, p_has_slot);
        set session innodb_lock_wait_timeout = v_timeout;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_add_group_slots;

delimiter //
create procedure rowq.internal_add_group_slots(
    p_queue_id int,
    p_group_key varbinary(800),
    p_owns_transaction boolean,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- purpose   Add the slots that a raised limit allows a group; p_is_done is false to retry.
-- locks     as internal_try_take_group_slot and internal_release_group_slots
    declare v_first_id bigint;
    declare v_lane smallint;
    declare v_has_slot boolean default true;

    slots: while v_has_slot do
        set v_first_id = null;
        select g.message_id, g.lane into v_first_id, v_lane
        from rowq.group_waiting g force index (primary)
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
        order by g.queue_id, g.group_key, g.message_id
        limit 1;
        if v_first_id is null then
            leave slots;
        end if;
        call rowq.internal_try_take_group_slot(
            p_queue_id, p_group_key, p_owns_transaction, v_has_slot
        );
        if v_has_slot then
            call rowq.internal_release_group_slots(
                p_queue_id, json_array(json_array(v_first_id, hex(p_group_key))),
                p_owns_transaction
            );
        end if;
    end while;
    set p_is_done = v_has_slot is not null;
end//
delimiter ;
