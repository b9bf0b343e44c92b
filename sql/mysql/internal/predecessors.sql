-- Predecessors: messages that wait for others to end, and deferred work.
--
-- A message with predecessors waits in blocked, which dequeue does not read. A row of successor
-- links it to one predecessor at a time, the newest unfinished one. When that ends, the message is
-- linked to the next, or resumes at the front of its priority. The call that ends a message resumes
-- up to 1000 successors and defers the rest. If a predecessor dies, its successors are held, resume
-- or die, as their on_predecessor_dead says, 1000 at a time. deferred has the work that another
-- transaction's locks prevented: slots, blocked messages, rows of ended messages. maintain runs it.
--
--   complete, finish -> end_awaited
--   cancel, cancel_many -> finished_of
--   store_batch -> batch_predecessors
--   store -> block -> await_predecessor, defer
--   await_predecessor -> defer
--   delete_messages -> defer
--   push_dead -> propagate_deaths -> defer, propagate_death
--   propagate_death -> unblock, defer
--   unblock -> try_unblock
--   try_unblock -> await_predecessor
--   release_links, end_held -> resume_successors -> defer, resume_blocked
--   resume_blocked -> unblock, propagate_deaths
--   purge_blocked, pop_expired, pop_waiting -> pop_blocked
--   dequeue, maintain_delivery -> run_deferred -> retry_propagation, resume_successors,
--       resume_blocked
--   retry_propagation -> propagate_deaths
--
-- Writes blocked, dead, delayed, group_waiting, message, deferred, successor. Only reads finished,
-- lane.

drop procedure if exists rowq.internal_end_awaited;

delimiter //
create procedure rowq.internal_end_awaited(
    p_queue_id int,
    p_messages longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- purpose   Delete ended messages that have no dedup key, and resume their successors.
-- locks     as internal_read_links and internal_release_links; new deferred rows
-- differs   on PostgreSQL the delete returns has_successors
-- Messages whose rows another transaction has locked are deferred.
    declare v_links, v_held longtext;
    call rowq.internal_read_links(p_messages, null, false, true, v_links, v_held);
    call rowq.internal_delete_messages(p_queue_id, p_messages, v_held);
    if v_links is not null then
        call rowq.internal_release_links(p_queue_id, v_links, p_owns_transaction);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_finished_of;

delimiter //
create procedure rowq.internal_finished_of(
    p_queue_id int,
    p_message_ids longtext,
    out p_finished_ids longtext
)
sql security definer
modifies sql data
begin
-- purpose   Return which of these messages are finished and not yet archived, or null.
-- differs   PostgreSQL compares arrays
    select json_arrayagg(x.message_id) into p_finished_ids
    from rowq.finished f force index (primary)
    straight_join json_table(
        f.messages, '$[*]' columns (message_id bigint path '$[0]')
    ) x
    straight_join (
        select distinct j.message_id
        from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
    ) a on a.message_id = x.message_id
    where f.queue_id = p_queue_id
      and f.finish_id > 0;
end//
delimiter ;

drop procedure if exists rowq.internal_batch_predecessors;

delimiter //
create procedure rowq.internal_batch_predecessors(
    p_position int,
    p_stored longtext,
    p_positions longtext,
    inout p_predecessor_ids longtext,
    out p_own_id bigint,
    out p_error varchar(120)
)
sql security definer
modifies sql data
begin
-- purpose   Add the predecessors that a message names by their positions in the batch.
-- p_stored has, for each message before it, 1 if it is new and has not failed, then its message_id:
-- 20 digits together. p_own_id is the newest such predecessor.
    declare v_is_good boolean;
    declare v_low, v_high decimal(20);
    declare v_ids longtext;
    set p_own_id = null, p_error = null;

    call rowq.internal_is_id_list(p_positions, v_is_good);
    if v_is_good then
        select min(j.position), max(j.position) into v_low, v_high
        from json_table(p_positions, '$[*]' columns (position decimal(20) path '$')) j;
    end if;
    if not v_is_good or v_low < 1 or v_high >= p_position then
        set p_error =
            'predecessor_positions must be a list of earlier positions in the batch';
    elseif v_low is not null then
        select json_arrayagg(cast(substring(h.entry, 2) as signed)),
               max(if(left(h.entry, 1) = '1', cast(substring(h.entry, 2) as signed), null))
        into v_ids, p_own_id
        from (
            select substring(p_stored, (j.position - 1) * 20 + 1, 20) as entry
            from json_table(p_positions, '$[*]' columns (position int path '$')) j
            limit 1000000
        ) h;
        set p_predecessor_ids = json_merge_preserve(coalesce(p_predecessor_ids, '[]'), v_ids);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_block;

delimiter //
create procedure rowq.internal_block(
    p_queue_id int,
    p_message_id bigint,
    p_position int,
    p_lane smallint,
    p_due_at datetime(6),
    p_group_key varbinary(800),
    p_predecessor_ids longtext,
    p_own_id bigint,
    p_on_dead varchar(20),
    p_owns_transaction boolean,
    out p_state varchar(20)
)
sql security definer
modifies sql data
begin
-- purpose   Let a new message wait for its predecessors: waiting, unsure, failed, or free.
-- locks     as internal_await_predecessor; new blocked, dead and result rows
-- errors    RQ711
-- The caller releases the dedup key of a failed one. p_own_id: the newest predecessor that this
-- call has stored. p_position: the message's position in a batch, or 0.
    declare v_ids, v_remaining_ids longtext;
    declare v_newest_id, v_predecessor_id bigint;
    declare v_checks int;

    -- A number that is too big for an id is read as null.
    select json_arrayagg(h.message_id), max(h.message_id) into v_ids, v_newest_id
    from (
        select distinct coalesce(a.message_id, 9223372036854775807) as message_id
        from json_table(p_predecessor_ids, '$[*]' columns (message_id bigint path '$')) a
        order by coalesce(a.message_id, 9223372036854775807) desc
        limit 1000000
    ) h
    where h.message_id > 0;
    if v_newest_id >= p_message_id then
        call rowq.internal_refuse(
            concat(
                'predecessor_ids must name existing messages',
                if(p_position > 0, concat(' (message ', p_position, ')'), '')
            )
        );
    end if;

    set p_state = 'free';
    if v_newest_id = p_own_id then
        -- No other session sees this predecessor yet.
        update rowq.message m force index (primary)
        set m.has_successors = true
        where m.message_id = p_own_id;
        insert into rowq.successor (queue_id, predecessor_id, message_id)
        values (p_queue_id, p_own_id, p_message_id);
        set p_state = 'waiting', v_predecessor_id = p_own_id,
            v_remaining_ids = json_remove(v_ids, '$[0]');
        set v_remaining_ids = nullif(v_remaining_ids, '[]');
    elseif v_ids is not null then
        call rowq.internal_await_predecessor(
            p_queue_id, p_message_id, v_ids, p_on_dead, p_owns_transaction, p_owns_transaction,
            null, p_state, v_predecessor_id, v_remaining_ids, v_checks
        );
    end if;

    if p_state = 'failed' then
        insert into rowq.dead (queue_id, message_id, lane, attempt, died_at, last_error)
        values (
            p_queue_id, p_message_id, p_lane, 0, utc_timestamp(6),
            concat('predecessor ', v_predecessor_id, ' is dead')
        );
        call rowq.internal_push_result(
            p_queue_id, json_array(json_array(p_message_id + 0)), 'dead', null, null, null
        );
    elseif p_state <> 'free' then
        insert into rowq.blocked (
            queue_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, remaining_ids
        )
        values (
            p_queue_id, p_message_id, p_lane, v_predecessor_id, p_due_at, p_on_dead, p_group_key,
            v_remaining_ids
        );
        if p_state = 'unsure' then
            call rowq.internal_defer(
                p_queue_id, json_array(p_message_id + 0), null, false
            );
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_await_predecessor;

delimiter //
create procedure rowq.internal_await_predecessor(
    p_queue_id int,
    p_message_id bigint,
    p_predecessor_ids longtext,
    p_on_dead varchar(20),
    p_is_fresh boolean,
    p_owns_transaction boolean,
    p_max_checks int,
    out p_state varchar(20),
    out p_predecessor_id bigint,
    out p_remaining_ids longtext,
    out p_checks int
)
sql security definer
modifies sql data
begin
-- purpose   Let a message wait for the newest unfinished of its predecessors.
-- locks     the predecessor's message row, skipped if locked; a new successor row; new deferred
--           rows
-- p_predecessor_ids: newest first. p_state: waiting, free, failed, unsure if another transaction
-- has locked the predecessor, or cut after p_max_checks of them. p_is_fresh: a message that this
-- session does not see has ended.
    declare v_count int default json_length(p_predecessor_ids);
    declare v_at int default 0;
    declare v_next int;
    declare v_shown_id, v_locked_id, v_after, v_ended_id bigint;
    declare v_has_successors boolean;
    declare v_last int;
    set p_state = null, p_remaining_ids = null, p_checks = 0;

    candidates: while p_state is null do
        set v_last = coalesce(
            least(v_count, v_at + greatest(p_max_checks - p_checks, 0)), v_count
        );
        set v_next = null, p_predecessor_id = null, v_locked_id = null, v_ended_id = null;
        select j.position, j.message_id, m.message_id, m.has_successors
        into v_next, p_predecessor_id, v_shown_id, v_has_successors
        from json_table(
            p_predecessor_ids, '$[*]' columns (position for ordinality, message_id bigint path '$')
        ) j
        left join rowq.message m force index (primary)
            on m.message_id = j.message_id
           and m.queue_id = p_queue_id
        where j.position > v_at
          and j.position <= v_last
          and (m.message_id is not null or not p_is_fresh)
        limit 1;
        set p_checks = p_checks + coalesce(v_next, v_last) - v_at;
        if v_next is null then
            set p_state = if(v_last < v_count, 'cut', 'free'), v_at = v_last;
            leave candidates;
        end if;
        set v_at = v_next;
        if v_shown_id is null then
            -- It has ended, or is newer than the snapshot. Locking a missing key would lock the gap
            -- where new messages go.
            set p_state = 'unsure';
            leave candidates;
        end if;

        -- Lock the row until the transaction ends, without waiting: a call that ends the
        -- predecessor defers deleting it.
        if v_has_successors then
            select m.message_id, m.has_successors into v_locked_id, v_has_successors
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.queue_id = p_queue_id
            /*!80000 for share skip locked */ /*M!100600 lock in share mode skip locked */;
        else
            select m.message_id, m.has_successors into v_locked_id, v_has_successors
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.queue_id = p_queue_id
            for update skip locked;
        end if;
        if v_locked_id is null and p_is_fresh then
            -- It is locked by another session, or has just ended.
            select m.message_id, 'unsure' into v_locked_id, p_state
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.queue_id = p_queue_id;
            iterate candidates;
        elseif v_locked_id is null then
            set p_state = 'unsure';
            leave candidates;
        end if;

        -- The archiver deletes the message row later.
        select greatest(l.floor - 1, 0) into v_after
        from rowq.lane l force index (primary)
        where l.queue_id = p_queue_id
          and l.lane = -3 /* finished */;
        select f.finish_id into v_ended_id
        from rowq.finished f force index (primary)
        straight_join json_table(f.messages, '$[*]' columns (message_id bigint path '$[0]')) x
        where f.queue_id = p_queue_id
          and f.finish_id > v_after
          and x.message_id = p_predecessor_id
        limit 1;
        if v_ended_id is null and p_owns_transaction and p_on_dead in ('continue', 'fail') then
            select d.message_id into v_ended_id
            from rowq.dead d force index (primary)
            where d.queue_id = p_queue_id
              and d.message_id = p_predecessor_id;
            if v_ended_id is not null and p_on_dead = 'fail' then
                set p_state = 'failed';
                leave candidates;
            end if;
        end if;
        if v_ended_id is not null then
            -- Thousands may have ended since the last archive: skip all of them at once.
            select json_arrayagg(h.message_id) into p_predecessor_ids
            from (
                select j.message_id
                from json_table(
                    p_predecessor_ids,
                    '$[*]' columns (position for ordinality, message_id bigint path '$')
                ) j
                left join (
                    select distinct x.message_id
                    from rowq.finished f force index (primary)
                    straight_join json_table(
                        f.messages, '$[*]' columns (message_id bigint path '$[0]')
                    ) x
                    where f.queue_id = p_queue_id
                      and f.finish_id > v_after
                ) e on e.message_id = j.message_id
                where j.position > v_at
                  and e.message_id is null
                order by j.position
                limit 1000000
            ) h;
            set v_at = 0, v_count = coalesce(json_length(p_predecessor_ids), 0);
            iterate candidates;
        end if;

        if v_has_successors is null then
            update rowq.message m force index (primary)
            set m.has_successors = true
            where m.message_id = p_predecessor_id;
        end if;
        insert ignore into rowq.successor (queue_id, predecessor_id, message_id)
        values (p_queue_id, p_predecessor_id, p_message_id);
        if not p_owns_transaction and p_on_dead in ('continue', 'fail') then
            -- An old snapshot does not show whether the predecessor is dead.
            call rowq.internal_defer(
                p_queue_id, null, json_array(p_predecessor_id + 0), true
            );
        end if;
        set p_state = 'waiting';
    end while;

    -- The ids that remain are the tail of the list's text.
    if p_state = 'unsure' then
        set p_predecessor_id = null, v_at = v_at - 1;
    elseif p_state = 'cut' then
        set p_predecessor_id = null;
    end if;
    if p_state in ('waiting', 'unsure', 'cut') and v_at < v_count then
        set p_remaining_ids = if(
            v_at = 0, p_predecessor_ids,
            concat('[', substring_index(p_predecessor_ids, ',', v_at - v_count))
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_defer;

delimiter //
create procedure rowq.internal_defer(
    p_queue_id int,
    p_message_ids longtext,
    p_predecessor_ids longtext,
    p_are_dead boolean
)
sql security definer
modifies sql data
begin
-- purpose   Defer a check of blocked messages, or of messages whose predecessors have ended.
-- locks     new deferred rows
-- The same ids in both lists: ended messages whose rows another transaction has locked.
    insert into rowq.deferred (queue_id, due_at, deferred_id, message_id, predecessor_id, is_hint)
    select p_queue_id, utc_timestamp(6), uuid_short() & 9007199254740991,
           if(p_message_ids is null, null, j.message_id),
           if(p_predecessor_ids is null, null, j.message_id),
           p_message_ids is null and p_are_dead
    from json_table(
        coalesce(p_message_ids, p_predecessor_ids), '$[*]' columns (message_id bigint path '$')
    ) j;
end//
delimiter ;

drop procedure if exists rowq.internal_propagate_deaths;

delimiter //
create procedure rowq.internal_propagate_deaths(
    p_queue_id int,
    p_dead longtext,
    p_failed longtext,
    p_owns_transaction boolean,
    inout p_max_checks int
)
sql security definer
modifies sql data
begin
-- purpose   Propagate the deaths of messages to their successors, level by level.
-- locks     message rows, skipped if locked; new dead, result and deferred rows; as the helpers
--           that it calls
-- p_dead: arrays that begin with message_id. p_failed: messages to make dead first, as
-- internal_unblock returns them. p_max_checks is as for internal_unblock.
    declare c_most int default 1000;
    declare v_count int default 0;
    declare v_dead longtext default p_dead;
    declare v_failed longtext default p_failed;
    declare v_rest, v_slice, v_links, v_free, v_held, v_awaited longtext;
    declare v_at int;
    declare v_most int default c_most;

    levels: loop
        if v_failed is not null then
            insert into rowq.dead (queue_id, message_id, lane, attempt, died_at, last_error)
            select p_queue_id, j.message_id, j.lane, 0, utc_timestamp(6),
                   concat('predecessor ', j.dead_id, ' is dead')
            from json_table(
                v_failed,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    dead_id bigint path '$[3]'
                )
            ) j;
            call rowq.internal_push_result(p_queue_id, v_failed, 'dead', null, null, null);
            set v_rest = v_failed;
            while v_rest is not null do
                call rowq.internal_next_slice(v_rest, v_slice);
                call rowq.internal_read_links(
                    v_slice, null, true, not p_owns_transaction, v_links, v_held
                );
                if v_links is not null then
                    call rowq.internal_release_dedup_keys(p_queue_id, v_links);
                end if;
            end while;
            set v_dead = v_failed, v_count = v_count + json_length(v_failed);
        end if;

        -- If a row is locked, a producer is adding a successor: defer the check.
        select json_arrayagg(json_array(h.message_id, h.has_successors)) into v_free
        from (
            select m.message_id, m.has_successors
            from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */ skip locked
        ) h;
        select json_arrayagg(j.message_id) into v_awaited
        from json_table(
            v_free, '$[*]' columns (message_id bigint path '$[0]', is_awaited int path '$[1]')
        ) j
        where j.is_awaited;
        if coalesce(json_length(v_free), 0) < json_length(v_dead) then
            select json_arrayagg(j.message_id) into v_held
            from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
            left join (
                select distinct x.message_id
                from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) x
            ) f on f.message_id = j.message_id
            where f.message_id is null;
            call rowq.internal_defer(p_queue_id, null, v_held, true);
        end if;

        -- An old snapshot does not show all successors. A deep tree dies in steps, to keep
        -- transactions short.
        if v_awaited is null then
            leave levels;
        elseif not p_owns_transaction or v_count > c_most then
            call rowq.internal_defer(p_queue_id, null, v_awaited, true);
            leave levels;
        end if;

        set v_at = 0, v_failed = null;
        while v_at < json_length(v_awaited) do
            call rowq.internal_propagate_death(
                p_queue_id, json_extract(v_awaited, concat('$[', v_at, ']')), p_owns_transaction,
                v_most, p_max_checks, v_failed
            );
            set v_at = v_at + 1;
        end while;
        if v_failed is null then
            leave levels;
        end if;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_propagate_death;

delimiter //
create procedure rowq.internal_propagate_death(
    p_queue_id int,
    p_dead_id bigint,
    p_owns_transaction boolean,
    inout p_most int,
    inout p_max_checks int,
    inout p_failed longtext
)
sql security definer
modifies sql data
begin
-- purpose   Resume successors of a dead message that continue; add those that fail to p_failed.
-- locks     successor rows; as internal_unblock; new deferred rows
-- p_failed is as internal_unblock returns it, p_most and p_max_checks as for
-- internal_resume_successors.
    declare v_ids, v_again, v_some longtext;

    select json_arrayagg(h.message_id) into v_ids
    from (
        select s.message_id
        from rowq.successor s force index (primary)
        straight_join rowq.blocked b force index (primary)
            on b.queue_id = s.queue_id
           and b.message_id = s.message_id
        where s.queue_id = p_queue_id
          and s.predecessor_id = p_dead_id
          and b.on_dead in ('continue', 'fail')
        order by s.queue_id, s.predecessor_id, s.message_id
        limit p_most
    ) h;
    set p_most = p_most - coalesce(json_length(v_ids), 0);
    if v_ids is not null then
        delete s
        from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.successor s force index (primary)
            on s.queue_id = p_queue_id
           and s.predecessor_id = p_dead_id
           and s.message_id = j.message_id;
        call rowq.internal_unblock(
            p_queue_id, v_ids, null, p_owns_transaction, p_max_checks, v_again, v_some
        );
        if v_again is not null then
            call rowq.internal_defer(p_queue_id, v_again, null, false);
        end if;
        if v_some is not null then
            set p_failed = if(
                p_failed is null, v_some, json_merge_preserve(p_failed, v_some)
            );
        end if;
    end if;
    if p_most = 0 then
        call rowq.internal_defer(p_queue_id, null, json_array(p_dead_id + 0), true);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_unblock;

delimiter //
create procedure rowq.internal_unblock(
    p_queue_id int,
    p_message_ids longtext,
    p_ended_id bigint,
    p_owns_transaction boolean,
    inout p_max_checks int,
    out p_again longtext,
    out p_failed longtext
)
sql security definer
modifies sql data
begin
-- purpose   Check what blocked messages wait for, and resume those that wait for nothing.
-- locks     blocked rows, skipped if locked; as internal_try_unblock; new ready rows
-- p_again: ids to retry. p_failed: messages that fail, [message_id, lane, attempt, dead
-- predecessor]. p_max_checks: predecessors to check; it returns how many are left.
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_seen, v_held, v_free, v_ready longtext;
    declare v_message_id bigint;
    declare v_state varchar(20);
    declare v_next varchar(80);
    declare v_is_late, v_is_end boolean default false;
    declare v_left int;
    declare each_other cursor for
        select j.message_id
        from json_table(
            v_held, '$[*]' columns (message_id bigint path '$[0]', is_free int path '$[3]')
        ) j
        where not j.is_free;
    declare continue handler for not found set v_is_end = true;
    set p_again = null, p_failed = null;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
    select json_arrayagg(b.message_id) into v_seen
    from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.queue_id = p_queue_id
       and b.message_id = j.message_id;
    if v_seen is not null then
        -- Messages that have been blocked go to the front of their priorities.
        select json_arrayagg(json_array(h.message_id, h.lane div 2 * 2, 0, h.is_free)) into v_held
        from (
            select b.message_id, b.lane,
                   if(
                       b.predecessor_id <=> p_ended_id
                       and b.remaining_ids is null
                       and b.group_key is null
                       and coalesce(b.due_at <= v_now, true),
                       1, 0
                   ) as is_free
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.blocked b force index (primary)
                on b.queue_id = p_queue_id
               and b.message_id = j.message_id
            limit 1000000
            for update /*!80000 of b */ skip locked
        ) h;

        -- The others are locked by a session that may be cancelling them.
        select json_arrayagg(j.message_id) into p_again
        from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
        left join (
            select distinct x.message_id
            from json_table(v_held, '$[*]' columns (message_id bigint path '$[0]')) x
        ) h on h.message_id = j.message_id
        where h.message_id is null;
    end if;

    -- Each message has its share of the checks, so that one with many predecessors does not delay
    -- the others.
    set v_left = json_length(v_held);
    open each_other;
    set v_is_end = false;
    messages: loop
        fetch each_other into v_message_id;
        if v_is_end then
            leave messages;
        end if;
        call rowq.internal_try_unblock(
            p_queue_id, v_message_id, p_ended_id, p_owns_transaction, p_max_checks div v_left,
            p_max_checks, v_is_late, v_state, v_next
        );
        set v_is_end = false, v_left = v_left - 1;
        if v_state = 'again' then
            set p_again = json_array_append(coalesce(p_again, '[]'), '$', v_message_id + 0);
        elseif v_state = 'failed' then
            set p_failed = concat_ws(',', p_failed, v_next);
        elseif v_state = 'ready' then
            set v_ready = concat_ws(',', v_ready, v_next);
        end if;
    end loop;
    close each_other;
    set p_failed = concat('[', p_failed, ']'), v_ready = concat('[', v_ready, ']');

    select json_arrayagg(json_array(j.message_id, j.lane, 0)) into v_free
    from json_table(
        v_held,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            is_free int path '$[3]'
        )
    ) j
    where j.is_free;
    if v_free is not null then
        delete b
        from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.blocked b force index (primary)
            on b.queue_id = p_queue_id
           and b.message_id = j.message_id;
    end if;
    if v_free is not null and v_ready is not null then
        -- They resume in the order of their ids.
        select json_arrayagg(json_array(h.message_id, h.lane, 0)) into v_ready
        from (
            select j.message_id, j.lane
            from json_table(
                json_merge_preserve(v_free, v_ready),
                '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
            ) j
            order by j.message_id
            limit 1000000
        ) h;
    end if;
    if v_free is not null or v_ready is not null then
        call rowq.internal_push_ready(p_queue_id, coalesce(v_ready, v_free));
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_try_unblock;

delimiter //
create procedure rowq.internal_try_unblock(
    p_queue_id int,
    p_message_id bigint,
    p_ended_id bigint,
    p_owns_transaction boolean,
    p_share int,
    inout p_max_checks int,
    inout p_is_late boolean,
    out p_state varchar(20),
    out p_next varchar(80)
)
sql security definer
modifies sql data
begin
-- purpose   Check what a blocked message waits for; the caller has locked its row.
-- locks     as internal_await_predecessor and internal_try_take_group_slot; the message row,
--           skipped if locked
-- p_state: again, waiting, moved, ready or failed. p_next: [message_id, lane, attempt] if ready;
-- with the dead predecessor appended if failed. p_share: predecessors to check, of the call's
-- p_max_checks.
    declare v_lane smallint;
    declare v_predecessor_id, v_dead_id, v_shown_id, v_locked_id bigint;
    declare v_due_at datetime(6);
    declare v_on_dead varchar(20);
    declare v_group_key varbinary(800);
    declare v_remaining_ids, v_ids longtext;
    declare v_is_fresh, v_is_delayed boolean;
    declare v_has_slot boolean default true;
    declare v_checks int default 0;
    set p_state = 'free', p_next = null;

    select b.lane, b.predecessor_id, b.due_at, b.on_dead, b.group_key, b.remaining_ids
    into v_lane, v_predecessor_id, v_due_at, v_on_dead, v_group_key, v_remaining_ids
    from rowq.blocked b force index (primary)
    where b.queue_id = p_queue_id
      and b.message_id = p_message_id
    for update;

    set v_ids = v_remaining_ids;
    if v_predecessor_id is not null and not v_predecessor_id <=> p_ended_id then
        set v_ids = if(
            v_remaining_ids is null,
            concat('[', v_predecessor_id, ']'),
            concat('[', v_predecessor_id, ',', substring(v_remaining_ids, 2))
        );
    end if;
    if v_ids is not null then
        -- A snapshot that shows the message also shows its predecessors, unless they have ended.
        if not p_owns_transaction then
            select m.message_id into v_shown_id
            from rowq.message m force index (primary)
            where m.message_id = p_message_id;
        end if;
        set v_is_fresh = p_owns_transaction or v_shown_id is not null;
        call rowq.internal_await_predecessor(
            p_queue_id, p_message_id, v_ids, v_on_dead, v_is_fresh, p_owns_transaction,
            p_share, p_state, v_dead_id, v_remaining_ids, v_checks
        );
        set p_max_checks = greatest(p_max_checks - v_checks, 0);
    end if;
    set v_is_delayed = coalesce(v_due_at > utc_timestamp(6), false);

    if p_state in ('waiting', 'cut') then
        update rowq.blocked b force index (primary)
        set b.predecessor_id = v_dead_id,
            b.remaining_ids = v_remaining_ids
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id;
        set p_state = if(p_state = 'cut', 'again', p_state);
    elseif p_state = 'failed' then
        -- Its row gets the error, and a producer may be adding a successor to it.
        select m.message_id into v_locked_id
        from rowq.message m force index (primary)
        where m.message_id = p_message_id
        for update skip locked;
        if v_locked_id is null then
            set p_state = 'again';
        else
            set p_next = json_array(p_message_id + 0, v_lane + 0, 0, v_dead_id + 0);
        end if;
    elseif p_state = 'free' and v_is_delayed then
        insert into rowq.delayed (queue_id, due_at, message_id, lane, group_key)
        values (p_queue_id, v_due_at, p_message_id, v_lane, v_group_key);
        set p_state = 'moved';
    elseif p_state = 'free' and v_group_key is not null then
        -- Wait for a producer only once per call, and only briefly.
        set v_has_slot = null;
        if not p_is_late then
            call rowq.internal_try_take_group_slot(
                p_queue_id, v_group_key, p_owns_transaction, v_has_slot
            );
        end if;
        if v_has_slot is null then
            set p_is_late = true, p_state = 'again';
        elseif v_has_slot then
            -- Groups take turns.
            set p_state = 'ready', p_next = json_array(p_message_id + 0, v_lane + 0, 0);
        else
            insert into rowq.group_waiting (queue_id, group_key, message_id, lane)
            values (p_queue_id, v_group_key, p_message_id, v_lane);
            set p_state = 'moved';
        end if;
    elseif p_state = 'free' then
        -- Messages that have been blocked go to the front.
        set p_state = 'ready', p_next = json_array(p_message_id + 0, v_lane div 2 * 2, 0);
    else
        set p_state = 'again';
    end if;

    if p_state in ('moved', 'ready', 'failed') then
        delete from rowq.blocked
        where queue_id = p_queue_id
          and message_id = p_message_id;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_resume_successors;

delimiter //
create procedure rowq.internal_resume_successors(
    p_queue_id int,
    p_predecessor_id bigint,
    p_owns_transaction boolean,
    inout p_most int,
    inout p_max_checks int
)
sql security definer
modifies sql data
begin
-- purpose   Resume the messages that waited for this ended one; defer those that cannot resume now.
-- locks     successor rows; as internal_resume_blocked; new deferred rows
-- p_most: messages to resume. p_max_checks: as for internal_unblock. Both return how many are left.
    declare v_ids, v_again longtext;

    select json_arrayagg(h.message_id) into v_ids
    from (
        select s.message_id
        from rowq.successor s force index (primary)
        where s.queue_id = p_queue_id
          and s.predecessor_id = p_predecessor_id
        order by s.queue_id, s.predecessor_id, s.message_id
        limit p_most
    ) h;
    set p_most = p_most - coalesce(json_length(v_ids), 0);
    -- An old snapshot does not show all successors.
    if not p_owns_transaction or p_most = 0 then
        call rowq.internal_defer(
            p_queue_id, null, json_array(p_predecessor_id + 0), false
        );
    end if;
    if v_ids is not null then
        delete s
        from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.successor s force index (primary)
            on s.queue_id = p_queue_id
           and s.predecessor_id = p_predecessor_id
           and s.message_id = j.message_id;
        call rowq.internal_resume_blocked(
            p_queue_id, v_ids, p_predecessor_id, p_owns_transaction, p_max_checks, v_again
        );
        if v_again is not null then
            call rowq.internal_defer(p_queue_id, v_again, null, false);
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_resume_blocked;

delimiter //
create procedure rowq.internal_resume_blocked(
    p_queue_id int,
    p_message_ids longtext,
    p_ended_id bigint,
    p_owns_transaction boolean,
    inout p_max_checks int,
    out p_again longtext
)
sql security definer
modifies sql data
begin
-- purpose   Resume blocked messages, or make them dead with a predecessor; return those to retry.
-- locks     as internal_unblock and internal_propagate_deaths
    declare v_failed longtext;
    call rowq.internal_unblock(
        p_queue_id, p_message_ids, p_ended_id, p_owns_transaction, p_max_checks, p_again, v_failed
    );
    if v_failed is not null then
        call rowq.internal_propagate_deaths(
            p_queue_id, null, v_failed, p_owns_transaction, p_max_checks
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_pop_blocked;

delimiter //
create procedure rowq.internal_pop_blocked(
    p_queue_id int,
    p_seen longtext,
    out p_messages longtext,
    out p_ids longtext
)
sql security definer
modifies sql data
begin
-- purpose   Remove unlocked messages that wait for predecessors, by their ids; return them and their ids.
-- locks     blocked rows, skipping locked ones
    select json_arrayagg(json_array(h.message_id, h.lane, 0)), json_arrayagg(h.message_id)
    into p_messages, p_ids
    from (
        select b.message_id, b.lane
        from json_table(p_seen, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.blocked b force index (primary)
            on b.queue_id = p_queue_id
           and b.message_id = j.message_id
        for update /*!80000 of b */ skip locked
    ) h;
    delete b
    from json_table(p_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.queue_id = p_queue_id
       and b.message_id = j.message_id;
end//
delimiter ;

drop procedure if exists rowq.internal_run_deferred;

delimiter //
create procedure rowq.internal_run_deferred(
    p_queue_id int,
    p_limit int,
    p_owns_transaction boolean,
    p_may_reorder boolean,
    out p_solved int
)
sql security definer
modifies sql data
begin
-- purpose   Run up to p_limit deferred items; return how many succeeded.
-- locks     deferred rows, skipping locked ones; as the helpers that it calls
-- With p_may_reorder, items that fail may be put behind those that were not reached.
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_since, v_due_at datetime(6);
    declare v_deferred_id, v_last_id, v_message_id, v_predecessor_id bigint;
    declare v_group_key varbinary(800);
    declare v_is_hint, v_is_left, v_is_done boolean;
    declare v_seen, v_locked, v_items, v_awaited, v_again longtext;
    declare v_next, v_item varchar(80);
    declare v_is_end boolean default false;
    declare v_most int default p_limit;
    declare v_checks int default 50 * p_limit;
    declare each_item cursor for
        select j.deferred_id, v_epoch + interval j.due_at microsecond
        from json_table(
            v_seen,
            '$[*]' columns (
                position for ordinality,
                deferred_id bigint path '$[0]',
                due_at bigint path '$[1]'
            )
        ) j
        order by j.position;
    declare continue handler for not found set v_is_end = true;
    set p_solved = 0;

    select v_epoch + interval l.floor microsecond into v_since
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -4 /* deferred */;
    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
    select json_arrayagg(
               json_array(h.deferred_id, timestampdiff(microsecond, '1970-01-01', h.due_at))
           )
    into v_seen
    from (
        select r.due_at, r.deferred_id, r.is_hint
        from rowq.deferred r force index (primary)
        where r.queue_id = p_queue_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.queue_id, r.due_at, r.deferred_id
        limit p_limit
    ) h;

    open each_item;
    items: loop
        set v_is_end = false, v_is_hint = null;
        fetch each_item into v_deferred_id, v_due_at;
        if v_is_end then
            leave items;
        end if;
        set v_last_id = v_deferred_id;
        select r.group_key, r.message_id, r.predecessor_id, r.is_hint
        into v_group_key, v_message_id, v_predecessor_id, v_is_hint
        from rowq.deferred r force index (primary)
        where r.queue_id = p_queue_id
          and r.due_at = v_due_at
          and r.deferred_id = v_deferred_id
        for update skip locked;
        if v_is_hint is null then
            iterate items;
        end if;
        set v_item = concat(
                '[', coalesce(v_message_id, 'null'), ',', v_deferred_id, ',',
                timestampdiff(microsecond, v_epoch, v_due_at), ']'
            ),
            v_locked = concat_ws(',', v_locked, v_item);
        -- An old snapshot does not show later changes of messages.
        if v_group_key is null and not p_owns_transaction then
            iterate items;
        end if;

        -- Leave unresolved rows unchanged: an idle producer transaction must not cause writes.
        if v_predecessor_id is not null and least(v_most, v_checks) = 0 then
            -- This call has used up its limits: leave the item to the next one.
            set v_is_done = false;
        elseif v_message_id = v_predecessor_id then
            call rowq.internal_end_held(
                p_queue_id, v_message_id, v_most, v_checks, v_is_done
            );
        elseif v_message_id is not null then
            set v_is_done = false, v_items = concat_ws(',', v_items, v_item);
        elseif v_predecessor_id is not null and v_is_hint then
            call rowq.internal_retry_propagation(p_queue_id, v_predecessor_id, v_checks, v_is_done);
        elseif v_predecessor_id is not null then
            call rowq.internal_resume_successors(
                p_queue_id, v_predecessor_id, p_owns_transaction, v_most, v_checks
            );
            set v_is_done = true;
        elseif v_group_key is null then
            call rowq.internal_free_dedup_keys(p_queue_id, v_is_done);
        elseif v_is_hint then
            call rowq.internal_add_group_slots(
                p_queue_id, v_group_key, p_owns_transaction, v_is_done
            );
        else
            call rowq.internal_pass_group_slot(
                p_queue_id, v_group_key, true, p_owns_transaction, v_next, v_is_left
            );
            set v_is_done = not v_is_left;
            if v_next is not null then
                call rowq.internal_push_ready(p_queue_id, concat('[', v_next, ']'));
            end if;
        end if;
        if v_is_done then
            delete from rowq.deferred
            where queue_id = p_queue_id
              and due_at = v_due_at
              and deferred_id = v_deferred_id;
            set p_solved = p_solved + 1;
        end if;
    end loop;
    close each_item;

    -- One call for all messages waits only once for a producer that adds their group's slot.
    if v_items is not null then
        set v_items = concat('[', v_items, ']');
        select json_arrayagg(h.message_id) into v_awaited
        from (
            select distinct j.message_id
            from json_table(v_items, '$[*]' columns (message_id bigint path '$[0]')) j
            order by j.message_id
            limit 1000000
        ) h;
        call rowq.internal_resume_blocked(
            p_queue_id, v_awaited, null, p_owns_transaction, v_checks, v_again
        );
        delete r
        from json_table(
            v_items,
            '$[*]' columns (
                message_id bigint path '$[0]',
                deferred_id bigint path '$[1]',
                due_at bigint path '$[2]'
            )
        ) j
        straight_join rowq.deferred r force index (primary)
            on r.queue_id = p_queue_id
           and r.due_at = v_epoch + interval j.due_at microsecond
           and r.deferred_id = j.deferred_id
        left join json_table(
            coalesce(v_again, '[]'), '$[*]' columns (message_id bigint path '$')
        ) a on a.message_id = j.message_id
        where a.message_id is null;
        set p_solved = p_solved + row_count();
    end if;

    -- If they kept others from being reached, put them behind the others.
    set v_deferred_id = null;
    if p_may_reorder and v_locked is not null and p_solved < p_limit
       and json_length(v_seen) >= p_limit then
        select r.deferred_id, r.is_hint into v_deferred_id, v_is_hint
        from rowq.deferred r force index (primary)
        where r.queue_id = p_queue_id
          and (r.due_at = v_due_at and r.deferred_id > v_last_id or r.due_at > v_due_at)
          and r.due_at <= v_now
        order by r.queue_id, r.due_at, r.deferred_id
        limit 1;
    end if;
    if v_deferred_id is not null then
        update json_table(
            concat('[', v_locked, ']'),
            '$[*]' columns (deferred_id bigint path '$[1]', due_at bigint path '$[2]')
        ) j
        straight_join rowq.deferred r force index (primary)
            on r.queue_id = p_queue_id
           and r.due_at = v_epoch + interval j.due_at microsecond
           and r.deferred_id = j.deferred_id
        set r.due_at = v_now;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_retry_propagation;

delimiter //
create procedure rowq.internal_retry_propagation(
    p_queue_id int,
    p_message_id bigint,
    inout p_max_checks int,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- purpose   Propagate a death again; p_is_done is false if a producer is adding a successor.
-- locks     the message row, skipped if locked; as internal_propagate_deaths
    declare v_message_id, v_dead_id bigint;
    select m.message_id into v_message_id
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.queue_id = p_queue_id
    for update skip locked;
    set p_is_done = true;

    if v_message_id is null then
        select m.message_id, false into v_message_id, p_is_done
        from rowq.message m force index (primary)
        where m.message_id = p_message_id
          and m.queue_id = p_queue_id;
    else
        -- If the message was reset, its successors wait as before.
        select d.message_id into v_dead_id
        from rowq.dead d force index (primary)
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id;
        if v_dead_id is not null then
            call rowq.internal_propagate_deaths(
                p_queue_id, json_array(json_array(p_message_id + 0)), null, true, p_max_checks
            );
        end if;
    end if;
end//
delimiter ;
