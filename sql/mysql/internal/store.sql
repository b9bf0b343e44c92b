drop procedure if exists rowq.internal_store;

delimiter //
create procedure rowq.internal_store(
    p_part_id int,
    p_place int,
    p_now datetime(6),
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_due_at datetime(6),
    p_dedup_key longtext,
    p_max_attempts int,
    p_group_key longtext,
    p_predecessor_ids longtext,
    p_own_id bigint,
    p_on_predecessor_dead longtext,
    p_expire_seconds double,
    p_owns_transaction boolean,
    out p_message_id bigint,
    out p_outcome varchar(20),
    out p_joining varchar(2000),
    out p_is_failed boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_store
-- purpose   Keep one message, already checked, and let it wait where it belongs; p_joining is one that joins its group now, for internal_store_grouped. p_own_id is that of internal_block, and p_is_failed one whose dedup key the caller frees.
-- promise   P01 P05 P11 P12 P15 P20 P25 P27 P36
-- locks     new rows only; with a dedup key, waits for another open enqueue of that key; as
--           internal_block
-- errors    RQ711
-- differs   PostgreSQL stores a batch as a set; here ids come one by one
    declare v_lane smallint default p_priority * 2 + 1;
    declare v_is_open boolean;
    declare v_is_taken boolean default false;
    declare v_state varchar(20) default 'free';
    declare v_enqueued_at datetime(6) default p_now + interval p_place microsecond;
    set p_outcome = null, p_joining = null;

    hold: loop
        if p_dedup_key is not null then
            call rowq.internal_dedup_owner(p_part_id, p_dedup_key, v_is_taken, p_message_id);
            if p_message_id is not null then
                set p_outcome = 'duplicate';
                leave hold;
            end if;
        end if;

        insert into rowq.message (
            part_id, max_attempts, enqueued_at, due_at, message_type, dedup_key, headers, body,
            body_binary, group_key, expires_at
        )
        values (
            p_part_id, p_max_attempts, v_enqueued_at, if(p_due_at > p_now, p_due_at, null),
            p_message_type, p_dedup_key, p_headers, p_body, p_body_binary, p_group_key,
            v_enqueued_at + interval round(p_expire_seconds * 1000000) microsecond
        );
        set p_message_id = last_insert_id();
        if p_dedup_key is null then
            leave hold;
        end if;

        set v_is_taken = false;
        begin
            -- Handle a duplicate key of this insert only: a message_id that is used already must
            -- stay an error.
            declare continue handler for 1062 set v_is_taken = true;
            insert into rowq.dedup (part_id, dedup_key, message_id)
            values (p_part_id, p_dedup_key, p_message_id);
        end;
        if not v_is_taken then
            leave hold;
        end if;
        -- Another producer has committed the key while this one waited for it, or the key is free
        -- again by now: look once more.
        delete from rowq.message
        where message_id = p_message_id;
    end loop;

    if p_outcome is null then
        set p_outcome = 'enqueued';
        if p_predecessor_ids is not null then
            call rowq.internal_block(
                p_part_id, p_message_id, p_place, v_lane, if(p_due_at > p_now, p_due_at, null),
                p_group_key, p_predecessor_ids, p_own_id, p_on_predecessor_dead,
                p_owns_transaction, v_state
            );
        end if;
    end if;
    set p_is_failed = v_state = 'failed';
    if p_expire_seconds is not null and p_outcome = 'enqueued' then
        insert into rowq.expiry (part_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_part_id,
            v_enqueued_at + interval round(least(p_expire_seconds, 86400) * 1000000) microsecond,
            uuid_short() & 9007199254740991, p_message_id, v_lane,
            timestampdiff(microsecond, '1970-01-01', v_enqueued_at)
        );
    end if;
    if p_outcome = 'enqueued' and v_state = 'free' then
        select l.is_open into v_is_open
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane = v_lane;
        if not v_is_open then
            call rowq.internal_open_lane(p_part_id, v_lane);
        end if;

        -- Insert values and not a select, which would lock other rows under the caller's repeatable
        -- read.
        if p_due_at > p_now then
            insert into rowq.delayed (part_id, due_at, message_id, lane, group_key)
            values (p_part_id, p_due_at, p_message_id, v_lane, p_group_key);
        elseif p_group_key is not null then
            set p_joining = json_array(
                p_message_id + 0, v_lane + 0, 0, hex(p_group_key),
                timestampdiff(microsecond, '1970-01-01', v_enqueued_at)
            );
        else
            insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
            values (
                p_part_id, v_lane, timestampdiff(microsecond, '1970-01-01', v_enqueued_at),
                p_message_id, p_dedup_key is not null
            );
        end if;
    end if;
end//
delimiter ;
