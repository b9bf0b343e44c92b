procedure internal_reap(
    p_queue  in t_queue,
    p_limit  in number,
    p_reaped out number,
    p_died   out number
)
is
-- routine   internal_reap
-- purpose   Take messages back from expired claims to the front of their lanes, until p_limit is passed.
-- promise   P03 P09 P27 P34 P37
-- locks     expired claim rows and message rows, passing over locked ones; as internal_push_dead;
--           for cancelled messages as internal_finish; new history rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_floor constant number := internal_read_floor(p_queue.part_id, -1 /* claim */);
    v_row_id      rowid;
    v_claim       t_claim;
    v_messages    t_messages;
    v_rest        t_messages;
    v_cancelled   t_messages;
    v_locked      rowq_ids;
    v_held        rowq_ids;
    v_ended       pls_integer := 0;
    v_alive       t_messages;
    v_dead        t_messages;
    v_error       varchar2(300 char);
    -- Claims are fetched one by one, so that a claim is locked only when it is reaped.
    cursor expired is
        select /*+ index_rs_asc(c rowq_claim_pk) no_batch_table_access_by_rowid(c) */
               c.rowid, c.claim_id, c.worker_name, c.leased_at
        from rowq_claim c
        where c.part_id = p_queue.part_id
          and c.claim_id >= v_floor
          and c.lease_until <= v_now
        order by c.part_id, c.claim_id
        for update skip locked;
begin
    p_reaped := 0;
    p_died := 0;
    open expired;
    while p_reaped + p_died + v_ended < p_limit loop
        fetch expired into v_row_id, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at;
        exit when expired%notfound;
        v_messages := internal_claimed_messages(p_queue.part_id, v_claim.claim_id);
        internal_split_by_cancel(v_messages, v_rest, v_cancelled);
        if v_cancelled.count > 0 then
            -- Leave the claim alone while a producer is adding a message that waits for one of
            -- these.
            internal_lock_messages(
                p_queue.part_id, internal_ids_of(v_cancelled), v_locked, v_held
            );
            continue when v_held.count > 0;
        end if;
        -- The cursor may have been open for seconds. Pass over a claim whose heartbeat or finish
        -- came first: its lease is longer by then, or its row is locked or gone.
        delete from rowq_claim c
        where c.rowid = v_row_id
          and c.claim_id = v_claim.claim_id
          and c.lease_until <= v_now;
        continue when sql%rowcount = 0;
        delete from rowq_leased l
        where l.part_id = p_queue.part_id
          and l.claim_id = v_claim.claim_id;

        internal_finish(p_queue, v_cancelled, 'cancelled');
        v_ended := v_ended + v_cancelled.count;
        internal_split_by_attempts(p_queue, v_rest, v_alive, v_dead);
        v_error := 'lease expired';
        if v_claim.worker_name is not null then
            v_error := v_error || ': ' || v_claim.worker_name;
        end if;
        if p_queue.history_days > 0 then
            internal_push_history(p_queue.part_id, v_claim, v_cancelled, 'cancelled', null);
            internal_push_history(p_queue.part_id, v_claim, v_rest, 'lease_expired', v_error);
        end if;
        internal_as_front(v_alive, 0);
        internal_push_ready(p_queue.part_id, v_alive);
        internal_note_error(p_queue.part_id, v_alive, v_error, false);
        internal_push_dead(p_queue, v_dead, v_error, false);
        p_reaped := p_reaped + v_alive.count;
        p_died := p_died + v_dead.count;
    end loop;
    close expired;
end internal_reap;
