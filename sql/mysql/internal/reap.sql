drop procedure if exists rowq.internal_reap;

delimiter //
create procedure rowq.internal_reap(
    p_part_id int,
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
-- routine   internal_reap
-- purpose   Take messages back from expired claims to the front of their lanes, until p_limit is passed.
-- promise   P03 P09 P34 P37
-- locks     expired claim rows, passing over locked ones; in the caller's transaction as
--           internal_try_lock_messages; for cancelled messages as internal_finish; new history rows
    declare v_expired, v_held, v_messages, v_cancel_ids, v_alive, v_dead, v_front longtext;
    declare v_worker_name varchar(200);
    declare v_error varchar(300);
    declare v_leased_at datetime(6);
    declare v_after, v_claim_id, v_first_id, v_last_id bigint;
    declare v_lane, v_attempt smallint;
    declare v_at, v_ended int default 0;
    set p_reaped = 0, p_died = 0;

    select greatest(l.floor - 1, 0) into v_after
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -1 /* claim */;

    claims: while p_reaped + p_died + v_ended < p_limit do
        if v_at >= coalesce(json_length(v_expired), 0) then
            -- Find expired claims without locks, so that live claims are never locked, then lock
            -- them one by one.
            select json_arrayagg(h.claim_id), max(h.claim_id), 0 into v_expired, v_after, v_at
            from (
                select c.claim_id
                from rowq.claim c force index (primary)
                where c.part_id = p_part_id
                  and c.claim_id > v_after
                  and c.lease_until <= utc_timestamp(6)
                order by c.part_id, c.claim_id
                limit p_limit
            ) h;
            if v_expired is null then
                leave claims;
            end if;
        end if;
        set v_claim_id = json_extract(v_expired, concat('$[', v_at, ']')), v_at = v_at + 1;

        -- Pass over a claim whose heartbeat or finish came first: its lease is longer by then, or
        -- its row is locked or gone.
        set v_messages = null, v_first_id = null, v_cancel_ids = null;
        select c.worker_name, c.leased_at, c.lane, c.attempt, c.first_id, c.last_id, c.messages,
               c.cancel_ids
        into v_worker_name, v_leased_at, v_lane, v_attempt, v_first_id, v_last_id, v_messages,
             v_cancel_ids
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
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
        delete c
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id = v_claim_id;

        set v_held = v_messages, v_alive = null, v_dead = null,
            v_error = concat('lease expired', coalesce(concat(': ', v_worker_name), ''));
        if v_cancel_ids is not null then
            set v_ended = v_ended + json_length(v_cancel_ids);
            call rowq.internal_end_cancelled(
                p_part_id, v_cancel_ids, p_owns_transaction, v_messages
            );
        end if;
        if v_messages is not null then
            call rowq.internal_split_by_attempts(
                v_messages, p_max_attempts, p_owns_transaction, v_alive, v_dead
            );
        end if;
        if v_alive is not null then
            call rowq.internal_as_front(v_alive, 0, v_front);
            call rowq.internal_push_ready(p_part_id, v_front);
            call rowq.internal_note_error(v_alive, v_error);
            set p_reaped = p_reaped + json_length(v_alive);
        end if;
        if v_dead is not null then
            call rowq.internal_push_dead(
                p_part_id, v_dead, v_error, p_owns_transaction
            );
            set p_died = p_died + json_length(v_dead);
        end if;
        if p_history_days > 0 then
            call rowq.internal_push_history(
                p_part_id, v_claim_id, v_worker_name, v_leased_at, v_held, 'lease_expired',
                v_error, null, v_cancel_ids
            );
        end if;
    end while;
end//
delimiter ;
