-- Finish: how messages leave a claim, and how they end.
--
-- The claim is the fence. A call that finishes messages first deletes the claim, or takes them out
-- of it; a second session finds nothing there, and its messages are stale. reap does the same for
-- expired claims. An ended message is deleted, or kept in finished for the archive, and its links
-- are released in the same transaction: dedup key, group slot, successors. A dead message moves to
-- dead and keeps its row. An end does not wait for a producer that has locked the message's row:
-- maintain deletes the row by a row of deferred.
--
--   enqueue, store_batch, end_awaited, ... -> read_links -> try_lock_messages
--   dequeue_fast, complete, complete_and_dequeue -> expand_range
--   complete, complete_and_dequeue -> complete_claimed -> pop_claimed, finish
--   discard_dead, purge_blocked, ... -> finish -> next_slice, end_linked
--   retake_dedup_keys, store_batch, pop_group_waiting, ... -> next_slice
--   end_linked -> read_links, delete_messages, release_links
--   end_awaited -> delete_messages
--   end_awaited, archive -> release_links
--   complete, fail_now -> outcomes
--   retry_later, fail_now, release -> pop_claimed -> bound_gap, expand_range, split_cancels,
--       refuse_claim
--   extend_lease -> bound_gap, refuse_claim
--   retry_later, release -> back_off
--   retry_later, fail_now, trim_claim -> push_dead -> next_slice, read_links
--   retry_later -> split_by_attempts -> try_lock_messages
--   release -> as_front
--   cancel_many, record_cancels -> claims_of
--   reset, discard_dead -> lock_dead
--   run_deferred -> end_held
--   maintain_delivery -> reap -> expand_range, split_cancels, split_by_attempts, as_front,
--       record_error, push_dead
--
-- Writes claim, dead, finished, message. Only reads lane, queue.

drop procedure if exists rowq.internal_read_links;

delimiter //
create procedure rowq.internal_read_links(
    p_messages longtext,
    p_without_slot longtext,
    p_with_keys boolean,
    p_is_locking boolean,
    out p_links longtext,
    out p_held longtext
)
sql security definer
modifies sql data
begin
-- purpose   Return the links that ended messages release; null if there are none.
-- locks     the message rows, if p_is_locking, as internal_try_lock_messages
-- differs   PostgreSQL reads them as it deletes the messages
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    declare v_free longtext;
    declare v_more longtext;
    declare v_count, v_linked int default 0;
    declare v_is_second boolean default false;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_cut_at;
        resignal;
    end;
    set p_links = null, p_held = null;

    -- A link is [message_id, group key in hex, dedup key in hex, 1 if others wait for it]. p_held
    -- are messages whose rows another transaction has locked. MariaDB truncates json_arrayagg at
    -- group_concat_max_len, which 300 messages never reach, and at max_allowed_packet, which a
    -- slice (internal_next_slice) never reaches.
    if json_length(p_messages) > 300 and v_cut_at < @@max_allowed_packet then
        set session group_concat_max_len = @@max_allowed_packet;
    end if;
    if p_is_locking then
        -- Lock every row, so that no producer can name one as a predecessor any more. The limit
        -- keeps the engine from locking only some of them. An old snapshot may not show a message
        -- yet, but a lock finds it.
        set v_free = p_messages;
        locking: while v_free is not null do
            select json_arrayagg(if(h.is_linked, json_array(
                       h.message_id, if(h.has_slot, hex(h.group_key), null),
                       hex(h.dedup_key), h.has_successors
                   ), null)),
                   sum(h.is_linked), count(*)
            into p_links, v_linked, v_count
            from (
                select l.message_id, l.group_key, l.dedup_key, l.has_successors,
                       t.message_id is null as has_slot,
                       (l.group_key is not null and t.message_id is null)
                       or (p_with_keys and l.dedup_key is not null)
                       or coalesce(l.has_successors, false) as is_linked
                from (
                    select m.message_id, m.group_key, m.dedup_key, m.has_successors
                    from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) j
                    straight_join rowq.message m force index (primary)
                        on m.message_id = j.message_id
                    limit 1000000
                    for update /*!80000 of m */ skip locked
                ) l
                left join (
                    select distinct j.message_id
                    from json_table(p_without_slot, '$[*]' columns (message_id bigint path '$')) j
                ) t on t.message_id = l.message_id
            ) h;
            if v_count = json_length(v_free) or v_is_second then
                leave locking;
            end if;
            call rowq.internal_try_lock_messages(p_messages, v_free, p_held);
            set v_is_second = true;
        end while;
        if coalesce(v_linked, 0) = 0 or v_free is null then
            set p_links = null;
        end if;
    end if;
    if not p_is_locking or p_held is not null then
        select json_arrayagg(json_array(
                   m.message_id, if(t.message_id is null, hex(m.group_key), null),
                   hex(m.dedup_key), m.has_successors
               ))
        into v_more
        from json_table(
            coalesce(p_held, p_messages), '$[*]' columns (message_id bigint path '$[0]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        left join (
            select distinct j.message_id
            from json_table(p_without_slot, '$[*]' columns (message_id bigint path '$')) j
        ) t on t.message_id = m.message_id
        where (m.group_key is not null and t.message_id is null)
           or (p_with_keys and m.dedup_key is not null)
           or m.has_successors;
        set p_links = if(
            p_links is null, v_more, json_merge_preserve(p_links, coalesce(v_more, '[]'))
        );
    end if;
    if @@group_concat_max_len <> v_cut_at then
        set session group_concat_max_len = v_cut_at;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_try_lock_messages;

delimiter //
create procedure rowq.internal_try_lock_messages(
    p_messages longtext,
    out p_free longtext,
    out p_held longtext
)
sql security definer
modifies sql data
begin
-- purpose   Lock message rows; return those that are locked now, and those locked by another transaction.
-- locks     message rows, skipping locked ones; waits for rows that the caller's snapshot does not
--           show
-- differs   elsewhere a plain read shows every message that a lock finds
    declare v_locked, v_unseen longtext;
    declare v_count int;
    set p_free = p_messages, p_held = null;

    select json_arrayagg(h.message_id), count(*) into v_locked, v_count
    from (
        select m.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        limit 1000000
        for update /*!80000 of m */ skip locked
    ) h;
    if v_count < json_length(p_messages) then
        select json_arrayagg(if(m.message_id is null, null, json_array(j.message_id, null, null))),
               json_arrayagg(if(m.message_id is null, json_array(j.message_id, null, null), null)),
               sum(m.message_id is null)
        into p_held, v_unseen, v_count
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct x.message_id
            from json_table(v_locked, '$[*]' columns (message_id bigint path '$')) x
        ) l on l.message_id = j.message_id
        left join rowq.message m force index (primary) on m.message_id = j.message_id
        where l.message_id is null;
        if v_count > 0 then
            select count(*) into v_count
            from (
                select m.message_id
                from json_table(v_unseen, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.message m force index (primary) on m.message_id = j.message_id
                limit 1000000
                for update /*!80000 of m */
            ) h;
        end if;
        -- Drop the nulls that the aggregates have put into the arrays.
        select json_arrayagg(json_array(j.message_id, null, null)) into p_held
        from json_table(p_held, '$[*]' columns (message_id bigint path '$[0]')) j
        where j.message_id is not null;
        select json_arrayagg(json_array(j.message_id, null, null)) into p_free
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct x.message_id
            from json_table(p_held, '$[*]' columns (message_id bigint path '$[0]')) x
        ) h on h.message_id = j.message_id
        where h.message_id is null;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_expand_range;

delimiter //
create procedure rowq.internal_expand_range(
    p_first_id bigint,
    p_last_id bigint,
    p_lane smallint,
    p_attempt smallint,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- purpose   Return a range of ids as an array of [message_id, lane, attempt].
    -- An array of zeros counts to the end of the range: a recursive query would stop at a limit
    -- that a session may set. In JSON, MariaDB quotes a parameter, but not a sum.
    select json_arrayagg(json_array(p_first_id + j.place - 1, p_lane + 0, p_attempt + 0))
    into p_messages
    from json_table(
        concat('[0', repeat(',0', p_last_id - p_first_id), ']'),
        '$[*]' columns (place for ordinality)
    ) j;
    if p_messages is null then
        -- No function returns more than max_allowed_packet.
        call rowq.internal_refuse(
            'the batch exceeds max_allowed_packet; use fewer messages'
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_complete_claimed;

delimiter //
create procedure rowq.internal_complete_claimed(
    p_queue_name longtext,
    p_claim_id bigint,
    p_message_ids longtext,
    p_results longtext,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- purpose   Complete messages of a claim: those asked for that it still holds, or all.
-- locks     with an archive the queue, shared; as internal_pop_claimed and internal_finish; new
--           result and history rows
-- errors    RQ701 RQ711 RQ721
-- differs   shared by two routines, because a procedure cannot read another's result set
    declare v_queue_id, v_archive_days, v_history_days int;
    declare v_result_seconds double;
    declare v_worker_name varchar(200);
    declare v_leased_at datetime(6);
    declare v_is_keyed boolean;
    declare v_cancel_ids longtext;

    call rowq.internal_check_ids(p_message_ids);
    if p_claim_id is null then
        call rowq.internal_refuse('claim_id is required');
    end if;

    select q.queue_id, q.archive_days, q.result_seconds, q.history_days
    into v_queue_id, v_archive_days, v_result_seconds, v_history_days
    from rowq.queue q
    where q.queue_name = cast(p_queue_name as binary);
    if v_queue_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;

    if p_results is not null then
        call rowq.internal_check_results(
            p_results, coalesce(json_length(p_message_ids), 1), v_result_seconds
        );
    end if;
    if v_archive_days > 0 then
        call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
    end if;
    call rowq.internal_pop_claimed(
        v_queue_id, p_claim_id, p_message_ids, p_owns_transaction, v_is_keyed, p_messages,
        v_cancel_ids, v_worker_name, v_leased_at
    );
    if p_results is not null and p_message_ids is null and json_length(p_messages) > 1 then
        call rowq.internal_refuse(
            'results without message_ids requires a claim of exactly one message'
        );
    end if;
    if p_messages is not null then
        call rowq.internal_finish(
            v_queue_id, v_archive_days, v_is_keyed, p_messages, null, null,
            p_owns_transaction, 'completed'
        );
        if v_result_seconds > 0 then
            call rowq.internal_push_result(
                v_queue_id, p_messages, 'completed', null, p_results,
                coalesce(p_message_ids, json_extract(p_messages, '$[*][0]'))
            );
        end if;
        if v_history_days > 0 then
            call rowq.internal_push_history(
                v_queue_id, p_claim_id, v_worker_name, v_leased_at, p_messages, 'completed',
                null, null, null
            );
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_finish;

delimiter //
create procedure rowq.internal_finish(
    p_queue_id int,
    p_archive_days int,
    p_is_keyed boolean,
    p_messages longtext,
    p_without_slot longtext,
    p_keyless longtext,
    p_owns_transaction boolean,
    p_state varchar(20)
)
sql security definer
modifies sql data
begin
-- purpose   Delete ended messages or pass them to the archive, and release their links.
-- locks     as internal_end_linked and internal_end_awaited; result rows
    declare v_rest, v_slice longtext;

    if p_archive_days > 0 then
        insert into rowq.finished (queue_id, finished_at, state, messages)
        values (p_queue_id, utc_timestamp(6), p_state, p_messages);
    end if;
    if p_archive_days > 0 or p_is_keyed then
        set v_rest = p_messages;
        while v_rest is not null do
            call rowq.internal_next_slice(v_rest, v_slice);
            call rowq.internal_end_linked(
                p_queue_id, p_archive_days > 0, p_is_keyed, v_slice, p_without_slot, p_keyless,
                p_owns_transaction
            );
        end while;
    else
        call rowq.internal_end_awaited(p_queue_id, p_messages, p_owns_transaction);
    end if;
    -- complete stores the results of completed messages itself.
    if p_state <> 'completed' then
        call rowq.internal_push_result(p_queue_id, p_messages, p_state, null, null, null);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_next_slice;

delimiter //
create procedure rowq.internal_next_slice(inout p_messages longtext, out p_slice longtext)
sql security definer
reads sql data
begin
-- purpose   Split off as many messages as internal_read_links can return links for.
-- differs   elsewhere no aggregate is truncated at the length of a packet
    -- Two keys of 800 bytes in hex, an id, and punctuation.
    declare c_longest_link int default 3300;
    declare v_most int default greatest(1, @@max_allowed_packet div c_longest_link);

    if json_length(p_messages) > v_most then
        call rowq.internal_cut_slice(p_messages, v_most, p_slice);
    else
        set p_slice = p_messages, p_messages = null;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_end_linked;

delimiter //
create procedure rowq.internal_end_linked(
    p_queue_id int,
    p_is_archived boolean,
    p_is_keyed boolean,
    p_messages longtext,
    p_without_slot longtext,
    p_keyless longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- purpose   Release the links of ended messages, and delete those that are not archived.
-- locks     as internal_read_links, internal_release_dedup_keys and internal_release_links
-- differs   PostgreSQL reads links by the delete itself
    declare v_links, v_freed, v_held, v_more longtext;
    declare v_keyed longtext default p_messages;

    if p_keyless is not null then
        -- Messages without their key (p_keyless): other messages may have it now, and under the
        -- caller's REPEATABLE READ a locking read of a missing key would lock the gap around it.
        select json_arrayagg(json_array(j.message_id, null, null)) into v_keyed
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct a.message_id
            from json_table(p_keyless, '$[*]' columns (message_id bigint path '$')) a
        ) f on f.message_id = j.message_id
        where f.message_id is null;
    end if;

    -- internal_archive releases successors of an archived message that are not committed yet.
    call rowq.internal_read_links(
        p_messages, p_without_slot, true, not (p_is_archived and p_owns_transaction), v_links,
        v_held
    );
    set v_freed = v_links;
    if p_keyless is not null then
        call rowq.internal_read_links(
            v_keyed, null, true, not (p_is_archived and p_owns_transaction), v_freed, v_more
        );
    end if;
    if v_freed is not null and p_is_keyed then
        call rowq.internal_release_dedup_keys(p_queue_id, v_freed);
    end if;
    if not p_is_archived then
        call rowq.internal_delete_messages(p_queue_id, p_messages, v_held);
    end if;
    if v_links is not null then
        call rowq.internal_release_links(p_queue_id, v_links, p_owns_transaction);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_delete_messages;

delimiter //
create procedure rowq.internal_delete_messages(
    p_queue_id int,
    p_messages longtext,
    p_held longtext
)
sql security definer
modifies sql data
begin
-- purpose   Delete messages whose rows the caller has locked; defer those in p_held.
-- locks     message rows, held by the caller; new deferred rows
    if p_held is null then
        delete m
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
    else
        -- A producer may name one as a predecessor and never commit.
        delete m
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct x.message_id
            from json_table(p_held, '$[*]' columns (message_id bigint path '$[0]')) x
        ) h on h.message_id = j.message_id
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where h.message_id is null;
        call rowq.internal_defer(
            p_queue_id, json_extract(p_held, '$[*][0]'), json_extract(p_held, '$[*][0]'), false
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_release_links;

delimiter //
create procedure rowq.internal_release_links(
    p_queue_id int,
    p_links longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- purpose   Pass the group slots of ended messages on, and resume their successors.
-- locks     as internal_release_group_slots and internal_resume_successors
    declare v_message_id bigint;
    declare v_is_end boolean default false;
    declare v_most int default 1000;
    declare v_looks int default 10000;
    declare each_awaited cursor for
        select j.message_id
        from json_table(
            p_links,
            '$[*]' columns (message_id bigint path '$[0]', is_awaited int path '$[3]')
        ) j
        where j.is_awaited
        order by j.message_id;
    declare continue handler for not found set v_is_end = true;

    call rowq.internal_release_group_slots(p_queue_id, p_links, p_owns_transaction);
    open each_awaited;
    set v_is_end = false;
    awaited: loop
        fetch each_awaited into v_message_id;
        if v_is_end then
            leave awaited;
        end if;
        call rowq.internal_resume_successors(
            p_queue_id, v_message_id, p_owns_transaction, v_most, v_looks
        );
        set v_is_end = false;
    end loop;
    close each_awaited;
end//
delimiter ;

drop procedure if exists rowq.internal_outcomes;

delimiter //
create procedure rowq.internal_outcomes(
    p_message_ids longtext,
    p_messages longtext,
    p_outcome varchar(20),
    p_cancel_ids longtext
)
sql security definer
reads sql data
begin
-- purpose   Return the result of a finishing routine: the outcome of each message.
    if p_cancel_ids is not null then
        if p_message_ids is null then
            select json_arrayagg(j.message_id) into p_message_ids
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j;
        end if;
        select a.message_id,
               case
                   when c.message_id is not null then 'cancelled'
                   when h.message_id is not null then p_outcome
                   else 'stale'
               end as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        left join (
            select distinct j.message_id
            from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) j
        ) c on c.message_id = a.message_id
        left join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) h on h.message_id = a.message_id
        order by a.place;
    elseif p_message_ids is null then
        select j.message_id, p_outcome as outcome
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        order by j.place;
    elseif json_length(p_message_ids) = json_length(p_messages) then
        -- The claim held all of them, so none is stale.
        select a.message_id, p_outcome as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        order by a.place;
    else
        select a.message_id,
               if(h.message_id is not null, p_outcome, 'stale') as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        left join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) h on h.message_id = a.message_id
        order by a.place;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_pop_claimed;

delimiter //
create procedure rowq.internal_pop_claimed(
    p_queue_id int,
    p_claim_id bigint,
    p_message_ids longtext,
    p_owns_transaction boolean,
    out p_is_keyed boolean,
    out p_messages longtext,
    out p_cancel_ids longtext,
    out p_worker_name varchar(200),
    out p_leased_at datetime(6)
)
sql security definer
modifies sql data
begin
-- purpose   Take messages out of a claim: those asked for that it still holds, or all.
-- locks     the claim row, before any other row
-- errors    RQ721
-- differs   a claim holds its messages as a range of ids or as a JSON array
    declare v_claim_id bigint default p_claim_id;
    declare v_held, v_kept, v_kept_cancel_ids longtext;
    declare v_first_id, v_last_id bigint;
    declare v_lane, v_attempt smallint;
    declare v_at int;
    declare v_id, v_place varchar(40);
    set p_messages = null, p_cancel_ids = null;

    if not p_owns_transaction then
        call rowq.internal_bound_gap(p_queue_id, v_claim_id);
    end if;
    -- A locking read by the full key sees the current row even under an old snapshot.
    select c.is_keyed, c.lane, c.attempt, c.first_id, c.last_id, c.messages,
           c.cancel_ids, c.worker_name, c.leased_at
    into p_is_keyed, v_lane, v_attempt, v_first_id, v_last_id, v_held, p_cancel_ids, p_worker_name,
         p_leased_at
    from rowq.claim c force index (primary)
    where c.queue_id = p_queue_id
      and c.claim_id = v_claim_id
      and c.claim_id > 0
    for update;
    if v_held is null and v_first_id is not null then
        call rowq.internal_expand_range(v_first_id, v_last_id, v_lane, v_attempt, v_held);
    end if;
    if v_held is null and p_message_ids is null then
        call rowq.internal_refuse_claim(p_claim_id);
    end if;

    if p_message_ids is null then
        set p_messages = v_held;
    elseif json_length(p_message_ids) = 1 then
        -- Find one message by the text of its id. The number of entries before that text is its
        -- position in the array.
        set v_id = trim(leading '0' from json_value(p_message_ids, '$[0]'));
        set v_at = locate(concat('[', v_id, ','), v_held);
        if v_at > 0 then
            set v_place = concat('$[', json_length(concat(left(v_held, v_at - 1), '0]')) - 1, ']');
            set p_messages = concat('[', json_extract(v_held, v_place), ']');
            if json_length(v_held) > 1 then
                set v_kept = json_remove(v_held, v_place);
            end if;
        end if;
    elseif v_held is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_messages
        from json_table(
            v_held,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join (
            select distinct a.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = j.message_id;
        if json_length(p_messages) < json_length(v_held) then
            select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_kept
            from json_table(
                v_held,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    attempt smallint path '$[2]'
                )
            ) j
            left join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = j.message_id
            where w.message_id is null;
        end if;
    end if;

    if p_cancel_ids is not null then
        call rowq.internal_split_cancels(p_messages, p_cancel_ids, v_kept_cancel_ids);
    end if;

    if v_kept is not null then
        update rowq.claim c force index (primary)
        set c.messages = v_kept,
            c.cancel_ids = v_kept_cancel_ids
        where c.queue_id = p_queue_id
          and c.claim_id = p_claim_id;
    elseif p_messages is not null then
        delete c
        from rowq.claim c force index (primary)
        where c.queue_id = p_queue_id
          and c.claim_id = p_claim_id;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_split_cancels;

delimiter //
create procedure rowq.internal_split_cancels(
    p_messages longtext,
    inout p_cancel_ids longtext,
    out p_kept_ids longtext
)
sql security definer
reads sql data
begin
-- purpose   Leave in p_cancel_ids those of p_messages, and return the others; null if there are none.
    declare v_cancel_ids longtext default p_cancel_ids;

    select json_arrayagg(n.message_id) into p_cancel_ids
    from json_table(v_cancel_ids, '$[*]' columns (message_id bigint path '$')) n
    straight_join (
        select distinct j.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
    ) w on w.message_id = n.message_id;
    select json_arrayagg(n.message_id) into p_kept_ids
    from json_table(v_cancel_ids, '$[*]' columns (message_id bigint path '$')) n
    left join (
        select distinct j.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
    ) w on w.message_id = n.message_id
    where w.message_id is null;
end//
delimiter ;

drop procedure if exists rowq.internal_bound_gap;

delimiter //
create procedure rowq.internal_bound_gap(p_queue_id int, inout p_claim_id bigint)
sql security definer
modifies sql data
begin
-- purpose   Prepare to lock a claim that may be gone without blocking new claims.
-- locks     a new claim row, deleted at once
-- commits   never; moves the savepoint of internal_begin_work
    declare v_claim_id bigint;
    -- A claim that the snapshot shows stays in the index even if it is gone by now, so a lock on it
    -- covers no gap where new claims go.
    select c.claim_id into v_claim_id
    from rowq.claim c force index (primary)
    where c.queue_id = p_queue_id
      and c.claim_id = p_claim_id;

    if v_claim_id is null then
        -- The claim is newer than the snapshot, or gone. A lock on a missing key covers the gap up
        -- to the next row, where new claims go. A row that this transaction inserts and deletes
        -- ends the gap before them.
        set v_claim_id = uuid_short() & 9007199254740991;
        insert into rowq.claim (queue_id, claim_id, lease_until, messages)
        values (p_queue_id, v_claim_id, utc_timestamp(6) + interval 1 day, '[]');
        delete c
        from rowq.claim c force index (primary)
        where c.queue_id = p_queue_id
          and c.claim_id = v_claim_id;
        -- Move the savepoint past the row: if a refused call removed the row, the gap would grow
        -- again.
        savepoint rowq_call;
        if p_claim_id >= v_claim_id then
            -- No claim has had this number yet, because numbers only grow. Return null: a lock
            -- would cover the gap where new claims go.
            set p_claim_id = null;
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_refuse_claim;

delimiter //
create procedure rowq.internal_refuse_claim(p_claim_id bigint)
sql security definer
modifies sql data
begin
-- purpose   Raise the error for a claim that is gone.
-- errors    RQ721
    declare v_text varchar(128);
    set v_text = concat('RQ721 stale_claim: claim ', p_claim_id, ' no longer holds any messages');
    signal sqlstate '45721' set message_text = v_text;
end//
delimiter ;

drop procedure if exists rowq.internal_back_off;

delimiter //
create procedure rowq.internal_back_off(
    p_queue_id int,
    p_messages longtext,
    p_delay_seconds double,
    out p_delayed longtext
)
sql security definer
modifies sql data
begin
-- purpose   Return when delayed messages are due again: [message_id, lane, attempt, microseconds].
-- Without a limit the attempt stops below the highest smallint: the next dequeue adds one.
    declare v_base, v_factor, v_cap, v_jitter double;
    declare v_now bigint default timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));

    select q.backoff_base_seconds, q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter
    into v_base, v_factor, v_cap, v_jitter
    from rowq.queue q
    where q.queue_id = p_queue_id;

    select json_arrayagg(json_array(
               j.message_id, j.lane div 2 * 2 + 1, least(j.attempt, 32766),
               v_now + cast(1000000 * coalesce(
                   p_delay_seconds,
                   least(v_cap, v_base * pow(v_factor, least(j.attempt - 1, 60)))
                   * (1 - v_jitter * rand())
               ) as signed)
           ))
    into p_delayed
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
end//
delimiter ;

drop procedure if exists rowq.internal_push_dead;

delimiter //
create procedure rowq.internal_push_dead(
    p_queue_id int,
    p_messages longtext,
    p_error longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- purpose   Make messages dead with their last error, and propagate the deaths to their successors.
-- locks     new dead rows; in the caller's transaction as internal_read_links; new result rows; as
--           internal_release_dedup_keys, internal_release_group_slots and internal_propagate_deaths
    declare v_is_held boolean;
    declare v_rest longtext default p_messages;
    declare v_slice, v_links, v_held longtext;
    declare v_looks int default 10000;

    insert into rowq.dead (queue_id, message_id, lane, attempt, died_at, last_error)
    select p_queue_id, j.message_id, j.lane, j.attempt, utc_timestamp(6), left(p_error, 2000)
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;

    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        -- In its own transaction the call sees every message without a lock, and keys never change.
        -- New successors are read below.
        call rowq.internal_read_links(
            v_slice, null, true, not p_owns_transaction, v_links, v_held
        );
        if v_links is not null then
            call rowq.internal_release_dedup_keys(p_queue_id, v_links);
            select q.group_after_dead = 'hold' into v_is_held
            from rowq.queue q
            where q.queue_id = p_queue_id;
            if v_is_held then
                update json_table(
                    v_links,
                    '$[*]' columns (
                        message_id bigint path '$[0]',
                        group_key varchar(1600) path '$[1]'
                    )
                ) j
                straight_join rowq.dead d force index (primary)
                    on d.queue_id = p_queue_id
                   and d.message_id = j.message_id
                set d.holds_slot = true
                where j.group_key is not null;
            else
                call rowq.internal_release_group_slots(p_queue_id, v_links, p_owns_transaction);
            end if;
        end if;
    end while;
    call rowq.internal_push_result(p_queue_id, p_messages, 'dead', p_error, null, null);
    call rowq.internal_propagate_deaths(p_queue_id, p_messages, null, p_owns_transaction, v_looks);
end//
delimiter ;

drop procedure if exists rowq.internal_split_by_attempts;

delimiter //
create procedure rowq.internal_split_by_attempts(
    p_messages longtext,
    p_max_attempts int,
    p_owns_transaction boolean,
    out p_alive longtext,
    out p_dead longtext
)
sql security definer
modifies sql data
begin
-- purpose   Split messages into those with an attempt left and those without; null if empty.
-- locks     in the caller's transaction as internal_try_lock_messages
    declare v_exhausted, v_locked, v_free, v_held longtext;

    -- If the snapshot is older than a message, a lock finds it.
    if not p_owns_transaction then
        call rowq.internal_try_lock_messages(p_messages, v_free, v_held);
    end if;
    if v_free is not null then
        select json_arrayagg(j.message_id) into v_locked
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
        ) j
        straight_join (
            select distinct x.message_id
            from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) x
        ) f on f.message_id = j.message_id
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.attempt >= nullif(coalesce(m.max_attempts, p_max_attempts), 0)
        for update /*!80000 of m */;
    end if;
    if p_owns_transaction or v_held is not null then
        select json_arrayagg(j.message_id) into v_exhausted
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.attempt >= nullif(coalesce(m.max_attempts, p_max_attempts), 0);
    end if;
    if v_locked is not null then
        set v_exhausted = json_merge_preserve(coalesce(v_exhausted, '[]'), v_locked);
    end if;

    set p_alive = p_messages, p_dead = null;

    if v_exhausted is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_alive
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        left join (
            select distinct x.message_id
            from json_table(v_exhausted, '$[*]' columns (message_id bigint path '$')) x
        ) w on w.message_id = j.message_id
        where w.message_id is null;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_dead
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join (
            select distinct x.message_id
            from json_table(v_exhausted, '$[*]' columns (message_id bigint path '$')) x
        ) w on w.message_id = j.message_id;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_as_front;

delimiter //
create procedure rowq.internal_as_front(p_messages longtext, p_spent int, out p_front longtext)
sql security definer
modifies sql data
begin
-- purpose   Return messages for the front of their priority, with p_spent attempts fewer.
    -- As in internal_back_off, the next dequeue adds one to a smallint.
    select json_arrayagg(json_array(
               j.message_id, j.lane div 2 * 2, least(j.attempt - p_spent, 32766)
           ))
    into p_front
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
end//
delimiter ;

drop procedure if exists rowq.internal_claims_of;

delimiter //
create procedure rowq.internal_claims_of(
    p_queue_id int,
    p_message_ids longtext,
    out p_claim_ids longtext,
    out p_held_ids longtext
)
sql security definer
modifies sql data
begin
-- purpose   Return the claims that hold any of these messages, and those messages.
    -- A range is an array with as many entries.
    select json_arrayagg(h.claim_id), json_arrayagg(h.message_id) into p_claim_ids, p_held_ids
    from (
        select c.claim_id, w.message_id
        from rowq.claim c force index (primary)
        straight_join json_table(
            coalesce(c.messages, concat('[[0]', repeat(',[0]', c.last_id - c.first_id), ']')),
            '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        straight_join (
            select distinct a.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = if(c.messages is null, c.first_id + j.place - 1, j.message_id)
        where c.queue_id = p_queue_id
          and c.claim_id > 0
    ) h;
end//
delimiter ;

drop procedure if exists rowq.internal_lock_dead;

delimiter //
create procedure rowq.internal_lock_dead(
    p_queue_name longtext,
    p_message_ids longtext,
    p_max_messages int,
    p_message_type longtext,
    p_died_before datetime(6),
    out p_queue_id int,
    out p_dead longtext
)
sql security definer
modifies sql data
begin
-- purpose   Check the arguments of reset and discard_dead, and lock the dead messages they select.
-- locks     the queue, shared; dead rows, skipping locked ones
    declare v_limit int default if(p_message_ids is null, coalesce(p_max_messages, 1000), 10000);
    declare v_seen longtext;

    call rowq.internal_check_ids(p_message_ids);
    call rowq.internal_check_range('max_messages', p_max_messages, 1, 10000);
    if p_message_ids is not null
       and (p_message_type is not null or p_died_before is not null) then
        call rowq.internal_refuse(
            'message_ids is mutually exclusive with message_type and died_before'
        );
    end if;

    call rowq.internal_require_queue(p_queue_name, p_queue_id);
    call rowq.internal_lock_queue_shared(p_queue_id, p_queue_name);

    -- Find rows without locks, then lock them by their full keys, so that no gap is locked.
    if p_message_ids is null then
        select json_arrayagg(h.message_id) into v_seen
        from (
            select d.message_id
            from rowq.dead d force index (primary)
            where d.queue_id = p_queue_id
              and (p_died_before is null or d.died_at < p_died_before)
              and (p_message_type is null or cast(p_message_type as binary) = (
                  select cast(m.message_type as binary)
                  from rowq.message m force index (primary)
                  where m.message_id = d.message_id
              ))
            order by d.queue_id, d.message_id
            limit 10000
        ) h;
    else
        select json_arrayagg(h.message_id) into v_seen
        from (
            select distinct d.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            straight_join rowq.dead d force index (primary)
                on d.queue_id = p_queue_id
               and d.message_id = a.message_id
        ) h;
    end if;
    select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.holds_slot))
    into p_dead
    from (
        select d.message_id, d.lane, d.attempt, d.holds_slot
        from (
            select distinct a.message_id
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) a
            order by a.message_id
        ) j
        straight_join rowq.dead d force index (primary)
            on d.queue_id = p_queue_id
           and d.message_id = j.message_id
        limit v_limit
        for update skip locked
    ) h;
end//
delimiter ;

drop procedure if exists rowq.internal_end_held;

delimiter //
create procedure rowq.internal_end_held(
    p_queue_id int,
    p_message_id bigint,
    inout p_most int,
    inout p_most_looks int,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- purpose   Delete an ended message whose row was locked, and resume its new successors.
-- locks     the message row, skipped if locked; as internal_resume_successors
    declare v_message_id bigint;
    declare v_is_awaited boolean;
    select m.message_id, coalesce(m.has_successors, false) into v_message_id, v_is_awaited
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
    for update skip locked;
    if v_message_id is null then
        select count(*) = 0 into p_is_done
        from rowq.message m force index (primary)
        where m.message_id = p_message_id;
    else
        delete from rowq.message
        where message_id = p_message_id;
        if v_is_awaited then
            call rowq.internal_resume_successors(
                p_queue_id, p_message_id, true, p_most, p_most_looks
            );
        end if;
        set p_is_done = true;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_reap;

delimiter //
create procedure rowq.internal_reap(
    p_queue_id int,
    p_max_attempts int,
    p_history_days int,
    p_limit int,
    p_owns_transaction boolean,
    out p_reaped int,
    out p_died int
)
sql security definer
modifies sql data
begin
-- purpose   Return the messages of expired claims to the front of their lanes, until p_limit is reached.
-- locks     expired claim rows, skipping locked ones; in the caller's transaction as
--           internal_try_lock_messages; for cancelled messages as internal_finish; new history rows
    declare v_expired, v_held, v_messages, v_cancel_ids, v_alive, v_dead, v_front longtext;
    declare v_worker_name varchar(200);
    declare v_error varchar(300);
    declare v_leased_at datetime(6);
    declare v_after, v_claim_id, v_first_id, v_last_id bigint;
    declare v_lane, v_attempt smallint;
    declare v_at, v_ended int default 0;
    declare v_remaining, v_remaining_cancels longtext;
    set p_reaped = 0, p_died = 0;

    select greatest(l.floor - 1, 0) into v_after
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -1 /* claim */;

    claims: while p_reaped + p_died + v_ended < p_limit do
        if v_at >= coalesce(json_length(v_expired), 0) then
            -- Find expired claims without locks, so that live claims are never locked, then lock
            -- them one by one.
            select json_arrayagg(h.claim_id), max(h.claim_id), 0 into v_expired, v_after, v_at
            from (
                select c.claim_id
                from rowq.claim c force index (primary)
                where c.queue_id = p_queue_id
                  and c.claim_id > v_after
                  and c.lease_until <= utc_timestamp(6)
                order by c.queue_id, c.claim_id
                limit p_limit
            ) h;
            if v_expired is null then
                leave claims;
            end if;
        end if;
        set v_claim_id = json_extract(v_expired, concat('$[', v_at, ']')), v_at = v_at + 1;

        -- Skip a claim whose heartbeat or finish came first: its lease is longer, or its row is
        -- locked or gone.
        set v_messages = null, v_first_id = null, v_cancel_ids = null;
        select c.worker_name, c.leased_at, c.lane, c.attempt, c.first_id, c.last_id, c.messages,
               c.cancel_ids
        into v_worker_name, v_leased_at, v_lane, v_attempt, v_first_id, v_last_id, v_messages,
             v_cancel_ids
        from rowq.claim c force index (primary)
        where c.queue_id = p_queue_id
          and c.claim_id = v_claim_id
          and c.lease_until <= utc_timestamp(6)
        for update skip locked;
        if v_messages is null and v_first_id is not null then
            call rowq.internal_expand_range(
                v_first_id, v_last_id, v_lane, v_attempt, v_messages
            );
        end if;
        if v_messages is null then
            iterate claims;
        end if;
        set v_remaining = v_messages;
        call rowq.internal_cut_slice(
            v_remaining, p_limit - p_reaped - p_died - v_ended, v_messages
        );
        if v_remaining is null then
            delete c
            from rowq.claim c force index (primary)
            where c.queue_id = p_queue_id
              and c.claim_id = v_claim_id;
        else
            -- The messages beyond the limit stay in the claim, still expired.
            call rowq.internal_split_cancels(v_messages, v_cancel_ids, v_remaining_cancels);
            update rowq.claim c force index (primary)
            set c.messages = v_remaining,
                c.cancel_ids = v_remaining_cancels
            where c.queue_id = p_queue_id
              and c.claim_id = v_claim_id;
        end if;

        set v_held = v_messages, v_alive = null, v_dead = null,
            v_error = concat('lease expired', coalesce(concat(': ', v_worker_name), ''));
        if v_cancel_ids is not null then
            set v_ended = v_ended + json_length(v_cancel_ids);
            call rowq.internal_end_cancelled(
                p_queue_id, v_cancel_ids, p_owns_transaction, v_messages
            );
        end if;
        if v_messages is not null then
            call rowq.internal_split_by_attempts(
                v_messages, p_max_attempts, p_owns_transaction, v_alive, v_dead
            );
        end if;
        if v_alive is not null then
            call rowq.internal_as_front(v_alive, 0, v_front);
            call rowq.internal_push_ready(p_queue_id, v_front);
            call rowq.internal_record_error(v_alive, v_error);
            set p_reaped = p_reaped + json_length(v_alive);
        end if;
        if v_dead is not null then
            call rowq.internal_push_dead(
                p_queue_id, v_dead, v_error, p_owns_transaction
            );
            set p_died = p_died + json_length(v_dead);
        end if;
        if p_history_days > 0 then
            call rowq.internal_push_history(
                p_queue_id, v_claim_id, v_worker_name, v_leased_at, v_held, 'lease_expired',
                v_error, null, v_cancel_ids
            );
        end if;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_record_error;

delimiter //
create procedure rowq.internal_record_error(p_messages longtext, p_error longtext)
sql security definer
modifies sql data
begin
-- purpose   Store the last error of messages that are retried; skip rows that a producer holds.
-- locks     message rows, skipping locked ones
-- differs   the last error is stored with the body, not with the state
    -- Without a limit MySQL would merge the subquery into the update, and wait.
    update (
        select x.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message x force index (primary) on x.message_id = j.message_id
        limit 1000000
        for update /*!80000 of x */ skip locked
    ) h
    straight_join rowq.message m force index (primary) on m.message_id = h.message_id
    set m.last_error = left(p_error, 2000);
end//
delimiter ;
