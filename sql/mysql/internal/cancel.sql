-- Cancel: cancelling by a caller, expiry, and finding a message.
--
-- A waiting message is deleted where it waits and ends as cancelled or expired. If a message is
-- leased, the cancel is recorded in its claim: the heartbeat returns it, and the call that returns
-- the message ends it. A message that expires has rows in expiry. Each call that makes it ready or
-- moves it adds a row with its position, so maintain finds due messages by key, and deletes a row
-- whose message it does not find. A locked message is skipped and retried.
--
-- alter_message locks the row where a message waits, then its message row.
--
--   retry_later, fail_now, release, ... -> end_cancelled
--   cancel -> record_cancels
--   cancel, cancel_many -> cancel_unleased -> pop_waiting
--   purge_waiting -> pop_waiting -> delete_ready
--   alter_message -> lock_waiting, alter_waiting -> delete_ready, record_expiry
--   purge_ready -> delete_ready
--   get_message, get_history, read_result -> locate_messages
--   explain_message -> locate_messages, explain_blocked, explain_ready
--   explain_blocked -> locate_messages, explain_group
--   maintain_delivery -> expire -> pop_expired
--   pop_expired -> delete_ready
--   push_delayed, push_ready, rejoin_groups -> record_expiry
--
-- Writes expiry, lane. Only reads blocked, claim, dead, deferred, delayed, finished, group_waiting,
-- message, queue, ready, started, worker.

drop procedure if exists rowq.internal_end_cancelled;

delimiter //
create procedure rowq.internal_end_cancelled(
    p_queue_id int,
    p_cancel_ids longtext,
    p_owns_transaction boolean,
    inout p_messages longtext
)
sql security definer
modifies sql data
begin
-- purpose   End the messages of a claim that were cancelled; leave the others in p_messages, or null.
-- locks     as internal_finish
    declare v_archive_days int;
    declare v_ended, v_rest longtext;

    select q.archive_days into v_archive_days
    from rowq.queue q
    where q.queue_id = p_queue_id;
    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_ended
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j
    straight_join (
        select distinct a.message_id
        from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) a
    ) w on w.message_id = j.message_id;
    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_rest
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j
    left join (
        select distinct a.message_id
        from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) a
    ) w on w.message_id = j.message_id
    where w.message_id is null;
    call rowq.internal_finish(
        p_queue_id, v_archive_days, true, v_ended, null, null, p_owns_transaction, 'cancelled'
    );
    set p_messages = v_rest;
end//
delimiter ;

drop procedure if exists rowq.internal_record_cancels;

delimiter //
create procedure rowq.internal_record_cancels(
    p_queue_id int,
    p_message_ids longtext,
    out p_recorded_ids longtext
)
sql security definer
modifies sql data
begin
-- purpose   Record a cancel in the claims that hold these messages; return the messages, or null.
-- locks     claim rows, skipping locked ones
    declare v_claim_ids, v_updates, v_recorded longtext;
    declare v_updated_before int;
    set p_recorded_ids = null;

    -- Find claims without locks, then lock them by their whole keys, so that no gap is locked.
    call rowq.internal_claims_of(p_queue_id, p_message_ids, v_claim_ids, p_recorded_ids);
    if v_claim_ids is not null then
        set p_recorded_ids = null;
        select json_arrayagg(h.claim_id), sum(h.has_cancels) into v_updates, v_updated_before
        from (
            select c.claim_id, c.cancel_ids is not null as has_cancels
            from (
                select distinct a.claim_id
                from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) a
            ) j
            straight_join rowq.claim c force index (primary)
                on c.queue_id = p_queue_id
               and c.claim_id = j.claim_id
            for update /*!80000 of c */ skip locked
        ) h;
        set v_claim_ids = v_updates, v_updates = null;
    end if;

    -- Read the latest rows, even under an old snapshot.
    if v_updated_before > 0 then
        select json_arrayagg(h.message_id) into v_recorded
        from (
            select n.message_id
            from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) l
            straight_join rowq.claim c force index (primary)
                on c.queue_id = p_queue_id
               and c.claim_id = l.claim_id
            straight_join json_table(
                c.cancel_ids, '$[*]' columns (message_id bigint path '$')
            ) n
            straight_join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = n.message_id
            for update /*!80000 of c */
        ) h;
    end if;
    if v_claim_ids is not null then
        -- A list of ids is passed as a text.
        select json_arrayagg(json_array(h.claim_id, concat(h.ids, ''))) into v_updates
        from (
            select c.claim_id, json_arrayagg(w.message_id) as ids
            from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) l
            straight_join rowq.claim c force index (primary)
                on c.queue_id = p_queue_id
               and c.claim_id = l.claim_id
            straight_join json_table(
                coalesce(c.messages, concat('[[0]', repeat(',[0]', c.last_id - c.first_id), ']')),
                '$[*]' columns (position for ordinality, message_id bigint path '$[0]')
            ) j
            straight_join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = if(c.messages is null, c.first_id + j.position - 1, j.message_id)
            left join (
                select distinct a.message_id
                from json_table(v_recorded, '$[*]' columns (message_id bigint path '$')) a
            ) o on o.message_id = w.message_id
            where o.message_id is null
            group by c.claim_id
            for update /*!80000 of c */
        ) h;
        update json_table(
            v_updates, '$[*]' columns (claim_id bigint path '$[0]', ids longtext path '$[1]')
        ) n
        straight_join rowq.claim c force index (primary)
            on c.queue_id = p_queue_id
           and c.claim_id = n.claim_id
        set c.cancel_ids = json_merge_preserve(coalesce(c.cancel_ids, '[]'), n.ids);
        select json_arrayagg(j.message_id) into p_recorded_ids
        from json_table(v_updates, '$[*]' columns (ids longtext path '$[1]')) n
        straight_join json_table(n.ids, '$[*]' columns (message_id bigint path '$')) j;
        if v_recorded is not null then
            set p_recorded_ids = json_merge_preserve(v_recorded, coalesce(p_recorded_ids, '[]'));
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_cancel_unleased;

delimiter //
create procedure rowq.internal_cancel_unleased(
    p_queue_id int,
    p_message_ids longtext,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- purpose   Cancel the messages that no worker holds, and return them.
-- locks     as internal_pop_waiting, then as internal_finish
    declare v_archive_days int;
    declare v_without_slot, v_keyless longtext;

    call rowq.internal_pop_waiting(
        p_queue_id, p_message_ids, p_messages, v_without_slot, v_keyless
    );
    if p_messages is not null then
        select q.archive_days into v_archive_days
        from rowq.queue q
        where q.queue_id = p_queue_id;
        call rowq.internal_finish(
            p_queue_id, v_archive_days, true, p_messages, v_without_slot, v_keyless,
            p_owns_transaction, 'cancelled'
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_pop_waiting;

delimiter //
create procedure rowq.internal_pop_waiting(
    p_queue_id int,
    p_message_ids longtext,
    out p_messages longtext,
    out p_without_slot longtext,
    out p_keyless longtext
)
sql security definer
modifies sql data
begin
-- purpose   Delete messages where they wait, and return them. Leased messages stay.
-- locks     blocked, delayed, dead, group_waiting and ready rows, skipping locked ones
-- differs   PostgreSQL finds delayed messages by their ids
-- p_without_slot: those without a slot of a group. p_keyless: those that were dead, or null.
    declare v_ids, v_seen, v_more, v_some, v_rest longtext;
    set p_messages = null, p_without_slot = '[]', p_keyless = null;

    -- Find rows without locks, then lock them by their whole keys. Under REPEATABLE READ a lock on
    -- a missing key would lock the gap around it and block producers.
    select json_arrayagg(h.message_id) into v_ids
    from (
        select distinct a.message_id
        from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        where a.message_id > 0
        order by a.message_id
    ) h;

    -- A blocked message moves from there to one of the other tables, so check blocked first.
    select json_arrayagg(b.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.queue_id = p_queue_id
       and b.message_id = j.message_id;
    if v_seen is not null then
        call rowq.internal_pop_blocked(p_queue_id, v_seen, p_messages, p_without_slot);
    end if;

    select json_arrayagg(d.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.dead d force index (primary)
        on d.queue_id = p_queue_id
       and d.message_id = j.message_id;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt)),
               json_arrayagg(if(h.holds_slot, null, h.message_id)),
               json_arrayagg(h.message_id)
        into v_some, v_more, p_keyless
        from (
            select d.message_id, d.lane, d.attempt, d.holds_slot
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.dead d force index (primary)
                on d.queue_id = p_queue_id
               and d.message_id = j.message_id
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(v_some, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.dead d force index (primary)
            on d.queue_id = p_queue_id
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_without_slot = json_merge_preserve(
                coalesce(p_without_slot, '[]'), coalesce(v_more, '[]')
            );
    end if;

    -- message.due_at is part of the key of delayed.
    select json_arrayagg(
               json_array(d.message_id, timestampdiff(microsecond, '1970-01-01', d.due_at))
           )
    into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.delayed d force index (primary)
        on d.queue_id = p_queue_id
       and d.due_at = m.due_at
       and d.message_id = j.message_id;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.due_at)),
               json_arrayagg(if(h.group_key is null, null, h.message_id))
        into v_some, v_more
        from (
            select d.message_id, d.lane, d.attempt, d.group_key, j.due_at
            from json_table(
                v_seen, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[1]')
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.queue_id = p_queue_id
               and d.due_at = timestamp'1970-01-01 00:00:00' + interval j.due_at microsecond
               and d.message_id = j.message_id
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.queue_id = p_queue_id
           and d.due_at = timestamp'1970-01-01 00:00:00' + interval j.due_at microsecond
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_without_slot = json_merge_preserve(
                coalesce(p_without_slot, '[]'), coalesce(v_more, '[]')
            );
    end if;

    -- A message moves from its group to ready, so check its group first.
    select json_arrayagg(g.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.group_waiting g force index (primary)
        on g.queue_id = p_queue_id
       and g.group_key = m.group_key
       and g.message_id = j.message_id;
    if v_seen is not null then
        call rowq.internal_pop_group_waiting(p_queue_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_without_slot = json_merge_preserve(
                coalesce(p_without_slot, '[]'), coalesce(v_more, '[]')
            );
    end if;

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- enqueued_at. Join the lanes: with a list of lanes MariaDB scans all ready messages for each
    -- id. The other messages are searched for in all of ready.
    select json_arrayagg(json_array(r.message_id, r.lane, r.attempt, r.seq)) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.lane l force index (primary)
        on l.queue_id = p_queue_id
       and l.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
       and l.is_open
    straight_join rowq.ready r force index (primary)
        on r.queue_id = p_queue_id
       and r.lane = l.lane
       and r.seq = timestampdiff(microsecond, '1970-01-01', m.enqueued_at)
       and r.message_id = j.message_id;
    set v_seen = coalesce(v_seen, '[]');
    select json_arrayagg(j.message_id) into v_rest
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    left join (
        select distinct a.message_id
        from json_table(
            json_merge_preserve(coalesce(p_messages, '[]'), v_seen),
            '$[*]' columns (message_id bigint path '$[0]')
        ) a
    ) f on f.message_id = j.message_id
    where m.queue_id = p_queue_id
      and f.message_id is null;
    if v_rest is not null then
        select json_arrayagg(json_array(r.message_id, r.lane, r.attempt, r.seq)) into v_more
        from rowq.ready r force index (primary)
        straight_join (
            select distinct a.message_id
            from json_table(v_rest, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = r.message_id
        where r.queue_id = p_queue_id
          and r.lane >= 0
          and r.message_id > 0;
        set v_seen = json_merge_preserve(v_seen, coalesce(v_more, '[]'));
    end if;
    if v_seen <> '[]' then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.seq)) into v_some
        from (
            select r.message_id, r.lane, r.attempt, r.seq
            from json_table(
                v_seen,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    seq bigint path '$[3]'
                )
            ) j
            straight_join rowq.ready r force index (primary)
                on r.queue_id = p_queue_id
               and r.lane = j.lane
               and r.seq = j.seq
               and r.message_id = j.message_id
            for update /*!80000 of r */ skip locked
        ) h;
        if v_some is not null then
            call rowq.internal_delete_ready(p_queue_id, v_some);
            set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), v_some);
        end if;
    end if;
    if p_messages = '[]' then
        set p_messages = null;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_lock_waiting;

delimiter //
create procedure rowq.internal_lock_waiting(
    p_queue_id int,
    p_message_id bigint,
    out p_place varchar(20),
    out p_group_key varbinary(800),
    out p_lane smallint,
    out p_attempt smallint,
    out p_seq bigint,
    out p_due_at datetime(6)
)
sql security definer
modifies sql data
begin
-- purpose   Lock a message where it waits; p_place is null if it is leased, locked or unknown.
-- locks     a blocked, dead, delayed, group_waiting or ready row, skipped if locked
-- p_due_at is the message's key in delayed.
    declare v_enqueued_at, v_due_at datetime(6);
    declare v_seen varchar(20);
    declare v_lane smallint;
    declare v_seq bigint;
    set p_place = null, p_group_key = null, p_lane = null, p_attempt = null, p_seq = null,
        p_due_at = null;

    -- Find the row without a lock, then lock it by its whole key, as internal_pop_waiting does. A
    -- message moves between the tables in this order.
    select m.group_key, m.enqueued_at, m.due_at
    into p_group_key, v_enqueued_at, v_due_at
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.queue_id = p_queue_id;

    select 'blocked' into v_seen
    from rowq.blocked b force index (primary)
    where b.queue_id = p_queue_id
      and b.message_id = p_message_id;
    if v_seen = 'blocked' then
        select 'blocked', b.lane, 0
        into p_place, p_lane, p_attempt
        from rowq.blocked b force index (primary)
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id
        for update skip locked;
    end if;

    if v_seen is null then
        select 'dead' into v_seen
        from rowq.dead d force index (primary)
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id;
    end if;
    if v_seen = 'dead' then
        select 'dead', d.lane, d.attempt
        into p_place, p_lane, p_attempt
        from rowq.dead d force index (primary)
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id
        for update skip locked;
    end if;

    if v_seen is null and v_due_at is not null then
        select 'delayed' into v_seen
        from rowq.delayed d force index (primary)
        where d.queue_id = p_queue_id
          and d.due_at = v_due_at
          and d.message_id = p_message_id;
    end if;
    if v_seen = 'delayed' then
        select 'delayed', d.lane, d.attempt, d.due_at
        into p_place, p_lane, p_attempt, p_due_at
        from rowq.delayed d force index (primary)
        where d.queue_id = p_queue_id
          and d.due_at = v_due_at
          and d.message_id = p_message_id
        for update skip locked;
    end if;

    if v_seen is null and p_group_key is not null then
        select 'group_waiting' into v_seen
        from rowq.group_waiting g force index (primary)
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id = p_message_id;
    end if;
    if v_seen = 'group_waiting' then
        select 'group_waiting', g.lane, 0
        into p_place, p_lane, p_attempt
        from rowq.group_waiting g force index (primary)
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id = p_message_id
        for update skip locked;
    end if;

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- enqueued_at. Any other message is searched for in all of ready.
    if v_seen is null then
        select r.lane, r.seq into v_lane, v_seq
        from rowq.lane l force index (primary)
        straight_join rowq.ready r force index (primary)
            on r.queue_id = p_queue_id
           and r.lane = l.lane
           and r.seq = timestampdiff(microsecond, '1970-01-01', v_enqueued_at)
           and r.message_id = p_message_id
        where l.queue_id = p_queue_id
          and l.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
          and l.is_open
        limit 1;
        if v_seq is null and v_enqueued_at is not null then
            select r.lane, r.seq into v_lane, v_seq
            from rowq.ready r force index (primary)
            where r.queue_id = p_queue_id
              and r.lane >= 0
              and r.message_id = p_message_id
            limit 1;
        end if;
        if v_seq is not null then
            select 'ready', r.lane, r.attempt, r.seq
            into p_place, p_lane, p_attempt, p_seq
            from rowq.ready r force index (primary)
            where r.queue_id = p_queue_id
              and r.lane = v_lane
              and r.seq = v_seq
              and r.message_id = p_message_id
            for update skip locked;
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_alter_waiting;

delimiter //
create procedure rowq.internal_alter_waiting(
    p_queue_id int,
    p_message_id bigint,
    p_place varchar(20),
    p_group_key varbinary(800),
    p_lane smallint,
    p_attempt smallint,
    p_seq bigint,
    p_was_due_at datetime(6),
    p_priority int,
    p_now datetime(6),
    p_expires boolean,
    p_owns_transaction boolean,
    inout p_due_at datetime(6)
)
sql security definer
modifies sql data
begin
-- purpose   Give a locked message a priority and a time, where not null; p_due_at becomes its time.
-- locks     rows that the caller has locked; the message row; new rows; as
--           internal_release_group_slots
    declare v_lane smallint default coalesce(p_priority * 2 + 1, p_lane);
    declare v_has_time boolean default p_due_at is not null;
    declare v_is_delayed, v_joins boolean default false;
    declare v_position bigint;

    if p_place = 'dead' then
        update rowq.dead d
        set d.lane = v_lane
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id;
    elseif p_place = 'blocked' then
        update rowq.blocked b
        set b.lane   = v_lane,
            b.due_at = if(p_due_at is null, b.due_at, if(p_due_at > p_now, p_due_at, null))
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id;
        select b.due_at into p_due_at
        from rowq.blocked b force index (primary)
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id
        for update;
    elseif p_place = 'delayed' then
        select d.group_key is not null into v_joins
        from rowq.delayed d force index (primary)
        where d.queue_id = p_queue_id
          and d.due_at = p_was_due_at
          and d.message_id = p_message_id
        for update;
        delete from rowq.delayed
        where queue_id = p_queue_id
          and due_at = p_was_due_at
          and message_id = p_message_id;
        set v_is_delayed = true, p_due_at = coalesce(p_due_at, p_was_due_at);
    elseif p_place = 'group_waiting' and p_due_at > p_now then
        delete from rowq.group_waiting
        where queue_id = p_queue_id
          and group_key = p_group_key
          and message_id = p_message_id;
        set v_is_delayed = true, v_joins = true;
    elseif p_place = 'group_waiting' then
        update rowq.group_waiting g
        set g.lane = v_lane
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id = p_message_id;
        set p_due_at = null;
    elseif p_due_at > p_now then
        -- A message that was leased before keeps its slot, as a retried one does. Any other leaves
        -- its group, and joins it again when it is due.
        call rowq.internal_delete_ready(
            p_queue_id, json_array(json_array(p_message_id, p_lane, p_attempt, p_seq))
        );
        set v_is_delayed = true, v_joins = p_attempt = 0 and p_group_key is not null,
            v_lane = v_lane div 2 * 2 + 1;
    elseif v_lane div 2 <> p_lane div 2 then
        call rowq.internal_delete_ready(
            p_queue_id, json_array(json_array(p_message_id, p_lane, p_attempt, p_seq))
        );
        call rowq.internal_push_ready(
            p_queue_id, json_array(json_array(p_message_id, v_lane, p_attempt))
        );
        set p_due_at = null, p_expires = false;
    else
        set p_due_at = null, v_lane = p_lane, v_position = p_seq - 1;
    end if;

    -- The time of a message that will be delayed is also in its message row.
    if v_has_time and (v_is_delayed or p_place = 'blocked') then
        update rowq.message m
        set m.due_at = p_due_at
        where m.message_id = p_message_id;
    end if;
    if v_is_delayed then
        insert into rowq.delayed (queue_id, due_at, message_id, lane, attempt, group_key)
        values (
            p_queue_id, p_due_at, p_message_id, v_lane, p_attempt, if(v_joins, p_group_key, null)
        );
    end if;
    if p_expires then
        call rowq.internal_record_expiry(
            p_queue_id, json_array(json_array(p_message_id, v_lane)), v_position
        );
    end if;
    if p_place = 'ready' and v_joins then
        call rowq.internal_release_group_slots(
            p_queue_id, json_array(json_array(p_message_id, hex(p_group_key))), p_owns_transaction
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_delete_ready;

delimiter //
create procedure rowq.internal_delete_ready(p_queue_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- purpose   Delete ready rows by their whole keys: [message_id, lane, attempt, seq].
-- locks     ready rows
-- differs   no such helper elsewhere: other engines delete by an array
    delete r
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            seq bigint path '$[3]'
        )
    ) j
    straight_join rowq.ready r force index (primary)
        on r.queue_id = p_queue_id
       and r.lane = j.lane
       and r.seq = j.seq
       and r.message_id = j.message_id;
end//
delimiter ;

drop procedure if exists rowq.internal_locate_messages;

delimiter //
create procedure rowq.internal_locate_messages(
    p_queue_id int,
    p_message_id bigint,
    p_enqueued_at datetime(6),
    p_group_key varbinary(800),
    inout p_due_at datetime(6),
    out p_state varchar(20),
    out p_lane smallint,
    out p_attempt smallint,
    out p_claim_id bigint,
    out p_worker_name varchar(200),
    out p_leased_at datetime(6),
    out p_lease_until datetime(6),
    out p_finished_at datetime(6),
    out p_waits_for bigint,
    out p_progress varchar(2000)
)
sql security definer
reads sql data
begin
-- purpose   Find a message that still has a body.
-- p_due_at is passed in as the message's due_at, its key in delayed.
    declare v_due_at datetime(6) default p_due_at;
    declare v_lane smallint;
    set p_due_at = null, p_state = null, p_lane = null, p_attempt = null, p_claim_id = null,
        p_worker_name = null, p_leased_at = null, p_lease_until = null, p_finished_at = null,
        p_waits_for = null, p_progress = null;

    select 'delayed', d.lane, d.attempt, d.due_at
    into p_state, p_lane, p_attempt, p_due_at
    from rowq.delayed d force index (primary)
    where d.queue_id = p_queue_id
      and d.due_at = v_due_at
      and d.message_id = p_message_id;

    if p_state is null then
        select 'dead', d.lane, d.attempt, d.died_at
        into p_state, p_lane, p_attempt, p_finished_at
        from rowq.dead d force index (primary)
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id;
    end if;

    if p_state is null then
        select 'blocked', b.lane, 0, b.due_at, b.predecessor_id
        into p_state, p_lane, p_attempt, p_due_at, p_waits_for
        from rowq.blocked b force index (primary)
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id;
    end if;

    if p_state is null and p_group_key is not null then
        select 'blocked', g.lane, 0
        into p_state, p_lane, p_attempt
        from rowq.group_waiting g force index (primary)
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id = p_message_id;
        select g.message_id, g.lane into p_waits_for, v_lane
        from rowq.group_waiting g force index (primary)
        where p_state is not null
          and g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id < p_message_id
        order by g.queue_id desc, g.group_key desc, g.message_id desc
        limit 1;
    end if;

    if p_state is null then
        select 'leased', c.lane, c.attempt, c.claim_id, c.worker_name, c.leased_at,
               c.lease_until, c.progress
        into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_leased_at,
             p_lease_until, p_progress
        from rowq.claim c force index (primary)
        where c.queue_id = p_queue_id
          and c.claim_id > 0
          and c.messages is null
          and p_message_id between c.first_id and c.last_id
        limit 1;
    end if;

    if p_state is null then
        select 'leased', j.lane, j.attempt, c.claim_id, c.worker_name, c.leased_at,
               c.lease_until, c.progress
        into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_leased_at,
             p_lease_until, p_progress
        from rowq.claim c force index (primary)
        straight_join json_table(
            c.messages, '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where c.queue_id = p_queue_id
          and c.claim_id > 0
          and j.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        select f.state, j.lane, j.attempt, f.finished_at
        into p_state, p_lane, p_attempt, p_finished_at
        from rowq.finished f force index (primary)
        straight_join json_table(
            f.messages, '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where f.queue_id = p_queue_id
          and f.finish_id > 0
          and j.message_id = p_message_id
        limit 1;
    end if;

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- enqueued_at.
    if p_state is null then
        select 'ready', r.lane, r.attempt
        into p_state, p_lane, p_attempt
        from rowq.ready r force index (primary)
        where r.queue_id = p_queue_id
          and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
          and r.seq = timestampdiff(microsecond, '1970-01-01', p_enqueued_at)
          and r.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        select 'ready', r.lane, r.attempt
        into p_state, p_lane, p_attempt
        from rowq.ready r force index (primary)
        where r.queue_id = p_queue_id
          and r.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        -- Another session has moved the message between these reads, so it holds the message:
        -- report it as leased.
        set p_state = 'leased';
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_explain_blocked;

delimiter //
create procedure rowq.internal_explain_blocked(
    p_queue_id int,
    p_message_id bigint,
    p_group_key varbinary(800),
    inout p_rows longtext
)
sql security definer
reads sql data
begin
-- purpose   Append to p_rows which message a blocked one waits for.
    declare v_enqueued_at, v_due_at, v_leased_at, v_lease_until, v_finished_at datetime(6);
    declare v_state varchar(20);
    declare v_worker_name varchar(200);
    declare v_lane, v_attempt smallint;
    declare v_claim_id, v_waits_for, v_predecessor_id bigint;
    declare v_is_blocked boolean default false;
    declare v_group_key varbinary(800);
    declare v_progress varchar(2000);

    select true, b.predecessor_id into v_is_blocked, v_predecessor_id
    from rowq.blocked b force index (primary)
    where b.queue_id = p_queue_id
      and b.message_id = p_message_id;
    if not v_is_blocked then
        call rowq.internal_explain_group(p_queue_id, p_message_id, p_group_key, p_rows);
    else
        select m.enqueued_at, m.due_at, m.group_key into v_enqueued_at, v_due_at, v_group_key
        from rowq.message m force index (primary)
        where m.message_id = v_predecessor_id
          and m.queue_id = p_queue_id;
        if v_enqueued_at is not null then
            call rowq.internal_locate_messages(
                p_queue_id, v_predecessor_id, v_enqueued_at, v_group_key, v_due_at, v_state, v_lane,
                v_attempt, v_claim_id, v_worker_name, v_leased_at, v_lease_until, v_finished_at,
                v_waits_for, v_progress
            );
        end if;
        set p_rows = json_array_append(p_rows, '$', case
            when v_state is null or v_state in ('completed', 'cancelled', 'expired')
                then json_array(
                    'deferred', null, null, null, null,
                    'its predecessor has ended; the next maintain resumes it'
                )
            when v_state = 'dead' then json_array(
                'predecessor_dead', null, v_predecessor_id, null, null,
                'its predecessor is dead; reset, cancel or discard that'
            )
            else json_array(
                'predecessor', cast(coalesce(v_lease_until, v_due_at) as char), v_predecessor_id,
                v_claim_id, v_worker_name,
                concat('it waits for its predecessor, which is ', v_state)
            )
        end);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_explain_group;

delimiter //
create procedure rowq.internal_explain_group(
    p_queue_id int,
    p_message_id bigint,
    p_group_key varbinary(800),
    inout p_rows longtext
)
sql security definer
reads sql data
begin
-- purpose   Append to p_rows which messages have the slots of a group, and how many wait before this one.
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_slots, v_waiting, v_lane int;
    declare v_delayed_from, v_deferred_from datetime(6);
    declare v_claim_from bigint;
    declare v_found longtext default '[]';
    declare v_more longtext;

    select q.group_limit into v_slots
    from rowq.queue q
    where q.queue_id = p_queue_id;
    select max(if(l.lane = -1 /* claim */, l.floor, 0)),
           '1970-01-01' + interval max(if(l.lane = -2 /* delayed */, l.floor, 0)) microsecond,
           '1970-01-01' + interval max(if(l.lane = -4 /* deferred */, l.floor, 0)) microsecond
    into v_claim_from, v_delayed_from, v_deferred_from
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane between -4 /* deferred */ and -1 /* claim */;

    -- A slot does not name its message, and there are few claims, so begin with these.
    select json_arrayagg(json_array(
        'group', cast(h.lease_until as char), h.message_id, h.claim_id, h.worker_name,
        'a message of its group is leased; the next one follows when it ends'
    ))
    into v_more
    from (
        select c.claim_id, c.worker_name, c.lease_until, m.message_id, m.group_key
        from rowq.claim c force index (primary)
        straight_join rowq.message m force index (primary)
            on m.message_id between c.first_id and c.last_id
        where c.queue_id = p_queue_id
          and c.claim_id > 0
          and c.claim_id >= v_claim_from
          and c.messages is null
          and c.is_keyed
        limit 10000
    ) h
    where h.group_key = p_group_key;
    set v_found = json_merge_preserve(v_found, coalesce(v_more, '[]'));

    select json_arrayagg(json_array(
        'group', cast(h.lease_until as char), h.message_id, h.claim_id, h.worker_name,
        'a message of its group is leased; the next one follows when it ends'
    ))
    into v_more
    from (
        select c.claim_id, c.worker_name, c.lease_until, m.message_id, m.group_key
        from rowq.claim c force index (primary)
        straight_join json_table(
            c.messages, '$[*]' columns (message_id bigint path '$[0]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where c.queue_id = p_queue_id
          and c.claim_id > 0
          and c.claim_id >= v_claim_from
          and c.messages is not null
          and c.is_keyed
        limit 10000
    ) h
    where h.group_key = p_group_key;
    set v_found = json_merge_preserve(v_found, coalesce(v_more, '[]'));

    select json_arrayagg(json_array(
        if(h.due_at > v_now, 'group_pause', 'deferred'), cast(h.due_at as char), null, null, null,
        if(
            h.due_at > v_now, 'its group pauses between two messages',
            'the next maintain passes on the slot of its group'
        )
    ))
    into v_more
    from (
        select d.due_at, d.group_key, d.is_hint
        from rowq.deferred d force index (primary)
        where d.queue_id = p_queue_id
          and d.due_at >= v_deferred_from
          and d.due_at < '9999-12-31 23:59:59.999998'
        limit 10000
    ) h
    where h.group_key = p_group_key;
    set v_found = json_merge_preserve(v_found, coalesce(v_more, '[]'));

    if json_length(v_found) < v_slots then
        select json_arrayagg(json_array(
            'group_dead', null, h.message_id, null, null,
            'a dead message holds the slot of its group; reset, cancel or discard it'
        ))
        into v_more
        from (
            select m.message_id, m.group_key, d.holds_slot
            from rowq.dead d force index (primary)
            straight_join rowq.message m force index (primary) on m.message_id = d.message_id
            where d.queue_id = p_queue_id
            limit 10000
        ) h
        where h.holds_slot
          and h.group_key = p_group_key;
        set v_found = json_merge_preserve(v_found, coalesce(v_more, '[]'));
    end if;
    if json_length(v_found) < v_slots then
        select json_arrayagg(json_array(
            'group', cast(h.due_at as char), h.message_id, null, null,
            'a message of its group is delayed after an attempt'
        ))
        into v_more
        from (
            select m.message_id, m.group_key, d.due_at, d.group_key as joins
            from rowq.delayed d force index (primary)
            straight_join rowq.message m force index (primary) on m.message_id = d.message_id
            where d.queue_id = p_queue_id
              and d.due_at >= v_delayed_from
              and d.due_at < '9999-12-31 23:59:59.999998'
            limit 10000
        ) h
        where h.joins is null
          and h.group_key = p_group_key;
        set v_found = json_merge_preserve(v_found, coalesce(v_more, '[]'));
    end if;
    if json_length(v_found) < v_slots then
        select json_arrayagg(json_array(
            'group', null, h.message_id, null, null,
            'a message of its group is ready and is delivered first'
        ))
        into v_more
        from (
            select m.message_id, m.group_key, r.attempt
            from rowq.lane l force index (primary)
            straight_join rowq.ready r force index (primary)
                on r.queue_id = l.queue_id
               and r.lane = l.lane
               and r.seq >= l.floor
               and r.seq < 9223372036854775806
            straight_join rowq.message m force index (primary) on m.message_id = r.message_id
            where l.queue_id = p_queue_id
              and l.lane >= 0
            limit 10000
        ) h
        where h.group_key = p_group_key;
        set v_found = json_merge_preserve(v_found, coalesce(v_more, '[]'));
    end if;

    select count(*) into v_waiting
    from (
        select g.message_id, g.lane
        from rowq.group_waiting g force index (primary)
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id < p_message_id
        limit 10000
    ) h;
    if v_waiting > 0 or json_length(v_found) = 0 then
        set v_found = json_array_append(v_found, '$', json_array(
            'group', null, null, null, null,
            if(
                v_waiting = 1, '1 message of its group waits before it',
                concat(v_waiting, ' messages of its group wait before it')
            )
        ));
    end if;
    set p_rows = json_merge_preserve(p_rows, v_found);
end//
delimiter ;

drop procedure if exists rowq.internal_explain_ready;

delimiter //
create procedure rowq.internal_explain_ready(
    p_queue_id int,
    p_message_id bigint,
    p_enqueued_at datetime(6),
    p_lane smallint,
    inout p_rows longtext
)
sql security definer
reads sql data
begin
-- purpose   Append to p_rows why a ready message is not leased.
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_since, v_paused_at, v_first, v_last datetime(6);
    declare v_seq, v_floor, v_claim_from, v_count bigint;
    declare v_max_leased, v_rate_limit int;
    declare v_rate_seconds double;
    declare v_attempt smallint;
    declare v_has_worker boolean default false;

    select q.paused_at, q.max_leased, q.rate_limit, q.rate_seconds
    into v_paused_at, v_max_leased, v_rate_limit, v_rate_seconds
    from rowq.queue q
    where q.queue_id = p_queue_id;
    select max(if(l.lane = p_lane, l.floor, 0)), max(if(l.lane = -1 /* claim */, l.floor, 0))
    into v_floor, v_claim_from
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane in (-1 /* claim */, p_lane);

    -- A message that was never returned has its enqueued_at as seq.
    select r.seq, r.attempt into v_seq, v_attempt
    from rowq.ready r force index (primary)
    where r.queue_id = p_queue_id
      and r.lane = p_lane
      and r.seq = timestampdiff(microsecond, '1970-01-01', p_enqueued_at)
      and r.message_id = p_message_id;
    if v_seq is null then
        select h.seq into v_seq
        from (
            select r.seq, r.message_id, r.attempt
            from rowq.ready r force index (primary)
            where r.queue_id = p_queue_id
              and r.lane = p_lane
              and r.seq >= v_floor
              and r.seq < 9223372036854775806
            order by r.queue_id, r.lane, r.seq, r.message_id
            limit 10000
        ) h
        where h.message_id = p_message_id;
    end if;
    if v_seq < v_floor then
        set p_rows = json_array_append(p_rows, '$', json_array(
            'late', null, null, null, null,
            concat(
                'it was committed after messages behind it were delivered; ',
                'the next maintain finds it'
            )
        ));
    end if;

    select coalesce(sum(h.messages), 0), min(h.lease_until), max(h.lease_until)
    into v_count, v_first, v_last
    from (
        select coalesce(json_length(c.messages), c.last_id - c.first_id + 1) as messages,
               c.lease_until
        from rowq.claim c force index (primary)
        where c.queue_id = p_queue_id
          and c.claim_id > 0
          and c.claim_id >= v_claim_from
        limit 10000
    ) h;
    if v_max_leased > 0 and v_count >= v_max_leased then
        set p_rows = json_array_append(p_rows, '$', json_array(
            'max_leased', cast(v_first as char), null, null, null,
            concat('the queue is at its max_leased of ', v_max_leased)
        ));
    end if;

    if v_rate_limit > 0 then
        set v_since = v_now - interval round(v_rate_seconds * 1000000) microsecond;
        select coalesce(sum(h.messages), 0), min(h.started_at) into v_count, v_first
        from (
            select s.messages, s.started_at
            from rowq.started s force index (primary)
            where s.queue_id = p_queue_id
              and s.started_at > v_since
            limit 10000
        ) h;
        if v_count >= v_rate_limit then
            set p_rows = json_array_append(p_rows, '$', json_array(
                'rate_limit',
                cast(v_first + interval round(v_rate_seconds * 1000000) microsecond as char),
                null, null, null,
                concat('the queue is at its rate_limit of ', v_rate_limit, ' per rate_seconds')
            ));
        end if;
    end if;

    -- The lanes before its own, then its own up to it.
    set v_seq = coalesce(v_seq, 9223372036854775805);
    select count(*) into v_count
    from (
        select r.message_id, r.attempt
        from rowq.lane l force index (primary)
        straight_join rowq.ready r force index (primary)
            on r.queue_id = l.queue_id
           and r.lane = l.lane
           and r.seq >= l.floor
           and r.seq < 9223372036854775806
        where l.queue_id = p_queue_id
          and l.lane >= 0
          and l.lane < p_lane
        limit 10000
    ) h;
    select least(v_count + count(*), 10000) into v_count
    from (
        select r.message_id, r.attempt
        from rowq.ready r force index (primary)
        where r.queue_id = p_queue_id
          and r.lane = p_lane
          and r.seq >= v_floor
          and r.seq <= v_seq
          and (r.seq < v_seq or r.message_id < p_message_id)
        limit 10000
    ) h;
    set p_rows = json_array_append(p_rows, '$', json_array(
        if(v_count = 0, 'next', 'behind'), null, null, null, null,
        case v_count
            when 0 then 'the next dequeue that leases a message leases this one'
            when 1 then '1 ready message is before it'
            else concat(v_count, ' ready messages are before it')
        end
    ));

    if v_paused_at is null and not coalesce(v_last > v_now, false) then
        select true into v_has_worker
        from rowq.worker w force index (primary)
        where w.queue_id = p_queue_id
          and w.last_seen_at > v_now - interval 60 second
        limit 1;
        if not v_has_worker then
            set p_rows = json_array_append(p_rows, '$', json_array(
                'no_worker', null, null, null, null,
                concat(
                    'no message of the queue is leased, ',
                    'and no worker has reported for 60 seconds'
                )
            ));
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_expire;

delimiter //
create procedure rowq.internal_expire(
    p_queue_id int,
    p_archive_days int,
    p_limit int,
    out p_expired int
)
sql security definer
modifies sql data
begin
-- purpose   Expire due messages, up to about p_limit; return how many expired.
-- locks     as internal_pop_expired; expiry rows; then as complete
-- Call it in rowq's own transaction.
    -- In microseconds, as in internal_rescan_floors.
    declare c_fast_scan bigint default 300;
    declare c_slow_scan bigint default 20000;
    -- The server truncates an array at 1 MB, which must hold the hex keys of all messages of a
    -- step.
    declare v_step_size int default least(p_limit, 250);
    declare v_most_seen bigint default 10 * p_limit;
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_started, v_now datetime(6) default utc_timestamp(6);
    declare v_latest bigint default timestampdiff(microsecond, '1970-01-01', v_now) - 500000;
    declare v_floor, v_first, v_took, v_pause bigint;
    declare v_is_checked boolean;
    declare v_since datetime(6);
    declare v_after bigint default 0;
    declare v_due, v_messages, v_without_slot, v_gone, v_some, v_kept longtext;
    declare v_seen, v_count, v_altered int default 0;
    set p_expired = 0;

    -- Correct the floor first, to find rows that committed late.
    select l.floor, l.check_after <= v_now into v_floor, v_is_checked
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -6 /* expiry */;
    call rowq.internal_first_key(
        p_queue_id, -6 /* expiry */, if(v_is_checked, 0, v_floor), v_first
    );
    set v_since = v_epoch + interval v_first microsecond,
        v_took = timestampdiff(microsecond, v_now, utc_timestamp(6)),
        v_first = least(v_first, v_latest);
    if v_is_checked and v_took > c_slow_scan then
        set v_pause = least(v_took * 50, 3600000000);
        update rowq.lane l
        set l.check_after = utc_timestamp(6) + interval v_pause microsecond
        where l.queue_id = p_queue_id
          and l.lane = -6 /* expiry */;
    end if;
    if v_first < v_floor
       or v_first > v_floor + if(v_took > c_fast_scan, 0, 60000000) then
        call rowq.internal_move_floor(p_queue_id, -6 /* expiry */, v_floor, v_first);
        set v_floor = v_first;
    end if;

    steps: while v_since <= v_now and v_seen < v_most_seen and p_expired < p_limit do
        -- One statement checks all tables, so that no message is missed on its way from one to
        -- another. Rows may exist for messages that expire later or never, if their writer could
        -- not see them.
        select json_arrayagg(json_array(
                   e.message_id, e.lane, e.seq,
                   case
                       when m.expires_at is null
                         or coalesce(r.message_id, d.message_id, b.message_id, g.message_id) is null
                           then null
                       when m.expires_at > v_now then 'later'
                       when r.message_id is not null then 'ready'
                       when d.message_id is not null then 'delayed'
                       when b.message_id is not null then 'blocked'
                       when g.message_id is not null then 'group_waiting'
                   end,
                   e.expiry_id, timestampdiff(microsecond, '1970-01-01', e.expires_at),
                   timestampdiff(microsecond, '1970-01-01', m.due_at),
                   timestampdiff(
                       microsecond, '1970-01-01', least(m.expires_at, v_now + interval 1 day)
                   )
               ))
        into v_due
        from (
            select x.expires_at, x.expiry_id, x.message_id, x.lane, x.seq
            from rowq.expiry x force index (primary)
            where x.queue_id = p_queue_id
              and x.expires_at >= v_since
              and x.expires_at <= v_now
              and (x.expires_at > v_since or x.expiry_id > v_after)
            order by x.queue_id, x.expires_at, x.expiry_id
            limit v_step_size
        ) e
        left join rowq.message m force index (primary) on m.message_id = e.message_id
        left join rowq.ready r force index (primary)
            on r.queue_id = p_queue_id
           and r.lane = e.lane
           and r.seq = e.seq
           and r.message_id = e.message_id
        left join rowq.delayed d force index (primary)
            on d.queue_id = p_queue_id
           and d.due_at = m.due_at
           and d.message_id = m.message_id
        left join rowq.blocked b force index (primary)
            on b.queue_id = p_queue_id
           and b.message_id = m.message_id
        left join rowq.group_waiting g force index (primary)
            on g.queue_id = p_queue_id
           and g.group_key = m.group_key
           and g.message_id = m.message_id;
        if v_due is null then
            leave steps;
        end if;
        set v_count = json_length(v_due), v_seen = v_seen + v_count;

        savepoint rowq_expire;
        call rowq.internal_pop_expired(p_queue_id, v_due, v_messages, v_without_slot);
        -- If alter_message has given one another time since the select, leave all of this step to
        -- the next maintain: a locked message cannot change any more, so check it now. In "if" a
        -- select would lock the message rows.
        select count(*) into v_altered
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.expires_at is null
           or m.expires_at > v_now;
        if v_altered > 0 then
            rollback to savepoint rowq_expire;
            set v_messages = null;
        end if;
        if v_messages is not null then
            call rowq.internal_finish(
                p_queue_id, p_archive_days, true, v_messages, v_without_slot, null, true, 'expired'
            );
            set p_expired = p_expired + json_length(v_messages);
        end if;

        -- A message that is in none of these tables has ended, is dead, or is leased: the call that
        -- returns it adds a row. Keep the row of a locked message, and postpone one row of a
        -- message that expires later.
        select json_arrayagg(
                   if(j.state is null or p.message_id is not null
                      or j.state = 'later' and j.turn > 1,
                      json_array(j.expiry_id, j.expires_at), null)
               ),
               json_arrayagg(
                   if(j.state <> 'later' and p.message_id is null,
                      json_array(j.expiry_id, j.expires_at), null)
               )
        into v_gone, v_some
        from (
            select x.message_id, x.state, x.expiry_id, x.expires_at,
                   row_number() over (
                       partition by x.message_id, x.state order by x.expiry_id
                   ) as turn
            from json_table(
                v_due,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    state varchar(20) path '$[3]',
                    expiry_id bigint path '$[4]',
                    expires_at bigint path '$[5]'
                )
            ) x
        ) j
        left join (
            select distinct a.message_id
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) a
        ) p on p.message_id = j.message_id;
        delete e
        from json_table(
            v_gone, '$[*]' columns (expiry_id bigint path '$[0]', expires_at bigint path '$[1]')
        ) j
        straight_join rowq.expiry e force index (primary)
            on e.queue_id = p_queue_id
           and e.expires_at = v_epoch + interval j.expires_at microsecond
           and e.expiry_id = j.expiry_id;
        if locate('"later"', v_due) > 0 then
            update json_table(
                v_due,
                '$[*]' columns (
                    state varchar(20) path '$[3]',
                    expiry_id bigint path '$[4]',
                    expires_at bigint path '$[5]',
                    later bigint path '$[7]'
                )
            ) j
            straight_join rowq.expiry e force index (primary)
                on e.queue_id = p_queue_id
               and e.expires_at = v_epoch + interval j.expires_at microsecond
               and e.expiry_id = j.expiry_id
            set e.expires_at = v_epoch + interval j.later microsecond
            where j.state = 'later';
        end if;
        set v_kept = if(v_kept is null, v_some, json_merge_preserve(v_kept, v_some)),
            v_since = v_epoch
                + interval json_extract(v_due, concat('$[', v_count - 1, '][5]')) microsecond,
            v_after = json_extract(v_due, concat('$[', v_count - 1, '][4]'));
        if v_count < v_step_size then
            leave steps;
        end if;
        -- Read the time again: messages that were resumed here have rows with later times.
        set v_now = utc_timestamp(6);
    end while;

    -- Move the rows that are kept behind the other due rows if they could block them. Otherwise
    -- leave them: an idle transaction must not cause writes.
    if v_seen >= v_most_seen
       or v_seen > 0 and timestampdiff(microsecond, v_started, utc_timestamp(6)) > c_slow_scan then
        update json_table(
            v_kept, '$[*]' columns (expiry_id bigint path '$[0]', expires_at bigint path '$[1]')
        ) j
        straight_join rowq.expiry e force index (primary)
            on e.queue_id = p_queue_id
           and e.expires_at = v_epoch + interval j.expires_at microsecond
           and e.expiry_id = j.expiry_id
        set e.expires_at = v_now;
    end if;
    if v_seen > 0 then
        call rowq.internal_first_key(p_queue_id, -6 /* expiry */, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_queue_id, -6 /* expiry */, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_pop_expired;

delimiter //
create procedure rowq.internal_pop_expired(
    p_queue_id int,
    p_due longtext,
    out p_messages longtext,
    out p_without_slot longtext
)
sql security definer
modifies sql data
begin
-- purpose   Delete messages in the states where internal_expire found them, except locked ones.
-- locks     blocked, delayed, group_waiting and ready rows, skipped if locked
-- p_without_slot: those without a slot of a group.
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_due, v_seen, v_some, v_more longtext;
    set p_messages = null, p_without_slot = '[]';

    -- A message may have several rows.
    select json_arrayagg(json_array(h.message_id, h.lane, h.seq, h.state, h.due_at))
    into v_due
    from (
        select j.message_id, max(j.lane) as lane, max(j.seq) as seq, max(j.state) as state,
               max(j.due_at) as due_at
        from json_table(
            p_due,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                seq bigint path '$[2]',
                state varchar(20) path '$[3]',
                due_at bigint path '$[6]'
            )
        ) j
        where j.state <> 'later'
        group by j.message_id
    ) h;

    if locate('"blocked"', v_due) > 0 then
        select json_arrayagg(j.message_id) into v_seen
        from json_table(
            v_due,
            '$[*]' columns (message_id bigint path '$[0]', state varchar(20) path '$[3]')
        ) j
        where j.state = 'blocked';
        call rowq.internal_pop_blocked(p_queue_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_without_slot = json_merge_preserve(p_without_slot, coalesce(v_more, '[]'));
    end if;

    if locate('"delayed"', v_due) > 0 then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.due_at)),
               json_arrayagg(if(h.group_key is null, null, h.message_id))
        into v_some, v_more
        from (
            select d.message_id, d.lane, d.attempt, d.group_key, j.due_at
            from json_table(
                v_due,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    state varchar(20) path '$[3]',
                    due_at bigint path '$[4]'
                )
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.queue_id = p_queue_id
               and d.due_at = v_epoch + interval j.due_at microsecond
               and d.message_id = j.message_id
            where j.state = 'delayed'
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.queue_id = p_queue_id
           and d.due_at = v_epoch + interval j.due_at microsecond
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_without_slot = json_merge_preserve(p_without_slot, coalesce(v_more, '[]'));
    end if;

    if locate('"group_waiting"', v_due) > 0 then
        select json_arrayagg(j.message_id) into v_seen
        from json_table(
            v_due,
            '$[*]' columns (message_id bigint path '$[0]', state varchar(20) path '$[3]')
        ) j
        where j.state = 'group_waiting';
        call rowq.internal_pop_group_waiting(p_queue_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_without_slot = json_merge_preserve(p_without_slot, coalesce(v_more, '[]'));
    end if;

    if locate('"ready"', v_due) > 0 then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.seq)) into v_some
        from (
            select r.message_id, r.lane, r.attempt, r.seq
            from json_table(
                v_due,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    seq bigint path '$[2]',
                    state varchar(20) path '$[3]'
                )
            ) j
            straight_join rowq.ready r force index (primary)
                on r.queue_id = p_queue_id
               and r.lane = j.lane
               and r.seq = j.seq
               and r.message_id = j.message_id
            where j.state = 'ready'
            for update /*!80000 of r */ skip locked
        ) h;
        if v_some is not null then
            call rowq.internal_delete_ready(p_queue_id, v_some);
            set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), v_some);
        end if;
    end if;
    if p_messages = '[]' then
        set p_messages = null;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_record_expiry;

delimiter //
create procedure rowq.internal_record_expiry(p_queue_id int, p_messages longtext, p_seq bigint)
sql security definer
modifies sql data
begin
-- purpose   Add a row of expiry for each of these messages that expires.
-- locks     new expiry rows
-- p_messages: [message_id, lane]. If they are ready, their seqs follow p_seq in order; otherwise it
-- is null.
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_rows longtext;

    -- Read first: under the caller's REPEATABLE READ an insert with a select would lock the rows
    -- that it reads. maintain checks messages that an old snapshot does not show.
    select json_arrayagg(
               json_array(
                   j.message_id, if(p_seq is null, null, j.lane), p_seq + j.position,
                   timestampdiff(
                       microsecond, '1970-01-01',
                       least(
                           greatest(coalesce(m.expires_at, v_now), v_now), v_now + interval 1 day
                       )
                   )
               )
           )
    into v_rows
    from json_table(
        p_messages,
        '$[*]' columns (
            position for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]'
        )
    ) j
    left join rowq.message m force index (primary) on m.message_id = j.message_id
    where m.expires_at is not null
       or m.message_id is null;

    if v_rows is not null then
        insert into rowq.expiry (queue_id, expires_at, expiry_id, message_id, lane, seq)
        select p_queue_id, v_epoch + interval j.expires_at microsecond,
               uuid_short() & 9007199254740991, j.message_id, j.lane, j.seq
        from json_table(
            v_rows,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                seq bigint path '$[2]',
                expires_at bigint path '$[3]'
            )
        ) j;
    end if;
end//
delimiter ;
