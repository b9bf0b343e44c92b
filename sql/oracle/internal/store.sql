procedure internal_store(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_new        in out nocopy t_new_messages
)
is
-- routine   internal_store
-- purpose   Store messages that are already checked in the places where they belong.
-- promise   P01 P02 P05 P11 P12 P20 P21 P22 P25 P27 P36
-- locks     new rows; with dedup keys, waits for open enqueues of the same keys, in key order; with
--           group keys as internal_join_groups; with predecessors as internal_block_batch
-- errors    RQ701 RQ711
    -- ORA-02291 (parent key not found): the queue was dropped while this insert waited for it.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    v_fresh      t_numbers;
    v_ready      t_numbers;
    v_later      t_numbers;
    v_expiring   t_numbers;
    v_is_waiting boolean := false;
begin
    internal_reserve_dedup_keys(p_part_id, p_new);
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' then
            v_fresh(i) := i;
            v_is_waiting := v_is_waiting or p_new(i).predecessor_ids is not null;
            if p_new(i).expires_at is not null then
                v_expiring(i) := i;
            end if;
            if p_new(i).due_at is null then
                v_ready(i) := i;
            else
                v_later(i) := i;
            end if;
        end if;
    end loop;
    internal_open_lanes_for(p_part_id, p_new);

    forall i in indices of v_fresh
        insert into rowq_message (
            part_id, message_id, max_attempts, lane, seq, enqueued_at, due_at, message_type,
            dedup_key, group_key, expires_at, headers, body, body_binary
        )
        values (
            p_part_id, p_new(i).message_id, p_new(i).max_attempts, p_new(i).lane, p_new(i).seq,
            p_new(i).enqueued_at, p_new(i).due_at, p_new(i).message_type,
            p_new(i).dedup_key, p_new(i).group_key, p_new(i).expires_at, p_new(i).headers,
            p_new(i).body, p_new(i).body_binary
        );
    forall i in indices of v_expiring
        insert into rowq_expiry (part_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_part_id,
            least(p_new(i).expires_at, p_new(i).enqueued_at + numtodsinterval(1, 'day')),
            rowq_claim_seq.nextval, p_new(i).message_id, p_new(i).lane, p_new(i).seq
        );
    if v_is_waiting then
        internal_block_batch(p_part_id, p_new, v_ready, v_later);
    end if;
    internal_store_grouped(p_part_id, p_new, v_ready);
    forall i in indices of v_ready
        insert into rowq_ready (part_id, lane, seq, message_id)
        values (p_part_id, p_new(i).lane, p_new(i).seq, p_new(i).message_id);
    forall i in indices of v_later
        insert into rowq_delayed (part_id, due_at, message_id, lane, group_key)
        values (
            p_part_id, p_new(i).due_at, p_new(i).message_id, p_new(i).lane, p_new(i).group_key
        );
exception
    when e_no_queue then
        internal_refuse_queue(p_queue_name);
end internal_store;
