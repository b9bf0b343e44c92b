drop procedure if exists rowq.internal_try_unblock;

delimiter //
create procedure rowq.internal_try_unblock(
    p_part_id int,
    p_message_id bigint,
    p_ended_id bigint,
    p_owns_transaction boolean,
    p_share int,
    inout p_most_looks int,
    inout p_is_late boolean,
    out p_state varchar(20),
    out p_next varchar(80)
)
sql security definer
modifies sql data
begin
-- routine   internal_try_unblock
-- purpose   Look again what a blocked message waits for, whose row the caller has locked: again, waiting, moved, ready or failed; p_next is one that is ready, as [message_id, lane, attempt], or one that fails, with the predecessor that is dead behind that. p_share is for how many predecessors it may look, of the p_most_looks that the call has.
-- promise   P25 P26 P27
-- locks     as internal_await_predecessor and internal_try_enter_group; the message row, tried only
-- differs   PostgreSQL does it in internal_unblock
    declare v_lane smallint;
    declare v_predecessor_id, v_dead_id, v_shown_id, v_locked_id bigint;
    declare v_due_at datetime(6);
    declare v_on_dead varchar(20);
    declare v_group_key varbinary(800);
    declare v_rest_ids, v_ids longtext;
    declare v_is_fresh, v_is_delayed boolean;
    declare v_has_token boolean default true;
    declare v_looks int default 0;
    set p_state = 'free', p_next = null;

    select b.lane, b.predecessor_id, b.due_at, b.on_dead, b.group_key, b.rest_ids
    into v_lane, v_predecessor_id, v_due_at, v_on_dead, v_group_key, v_rest_ids
    from rowq.blocked b force index (primary)
    where b.part_id = p_part_id
      and b.message_id = p_message_id
    for update;

    set v_ids = v_rest_ids;
    if v_predecessor_id is not null and not v_predecessor_id <=> p_ended_id then
        set v_ids = if(
            v_rest_ids is null,
            concat('[', v_predecessor_id, ']'),
            concat('[', v_predecessor_id, ',', substring(v_rest_ids, 2))
        );
    end if;
    if v_ids is not null then
        -- A snapshot that shows the message shows what it waits for, too, unless that has ended.
        if not p_owns_transaction then
            select m.message_id into v_shown_id
            from rowq.message m force index (primary)
            where m.message_id = p_message_id;
        end if;
        set v_is_fresh = p_owns_transaction or v_shown_id is not null;
        call rowq.internal_await_predecessor(
            p_part_id, p_message_id, v_ids, v_on_dead, v_is_fresh, p_owns_transaction,
            p_share, p_state, v_dead_id, v_rest_ids, v_looks
        );
        set p_most_looks = greatest(p_most_looks - v_looks, 0);
    end if;
    set v_is_delayed = coalesce(v_due_at > utc_timestamp(6), false);

    if p_state in ('waiting', 'cut') then
        update rowq.blocked b force index (primary)
        set b.predecessor_id = v_dead_id,
            b.rest_ids = v_rest_ids
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
        set p_state = if(p_state = 'cut', 'again', p_state);
    elseif p_state = 'failed' then
        -- Its row is to have the error, and a producer may be adding a message that waits for it.
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
        insert into rowq.delayed (part_id, due_at, message_id, lane, group_key)
        values (p_part_id, v_due_at, p_message_id, v_lane, v_group_key);
        set p_state = 'moved';
    elseif p_state = 'free' and v_group_key is not null then
        -- Wait for a producer once a call, and no longer than a moment.
        set v_has_token = null;
        if not p_is_late then
            call rowq.internal_try_enter_group(
                p_part_id, v_group_key, p_owns_transaction, v_has_token
            );
        end if;
        if v_has_token is null then
            set p_is_late = true, p_state = 'again';
        elseif v_has_token then
            -- Groups take turns.
            set p_state = 'ready', p_next = json_array(p_message_id + 0, v_lane + 0, 0);
        else
            insert into rowq.grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_group_key, p_message_id, v_lane);
            set p_state = 'moved';
        end if;
    elseif p_state = 'free' then
        -- What has been begun is finished first.
        set p_state = 'ready', p_next = json_array(p_message_id + 0, v_lane div 2 * 2, 0);
    else
        set p_state = 'again';
    end if;

    if p_state in ('moved', 'ready', 'failed') then
        delete from rowq.blocked
        where part_id = p_part_id
          and message_id = p_message_id;
    end if;
end//
delimiter ;
