procedure dequeue_wait(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_wait_seconds  in number default 20,
    p_rows          out sys_refcursor
)
is
-- routine   dequeue_wait
-- version   1
-- purpose   Dequeue like dequeue_fast, but wait until a message is ready or the time is up.
-- promise   P03 P17
-- locks     as dequeue_fast; while it waits, the queue's dbms_lock, if the owner may use dbms_lock
-- commits   after each poll, so that nothing is held while it waits; refuses an open transaction
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array, in a result of one row and column; in package rowq_wait
    -- Call package rowq by dynamic SQL, so that it is in use only during a poll and can be replaced
    -- while sessions wait.
    c_poll     constant varchar2(100 char) :=
        'begin rowq.poll_once(:1, :2, :3, :4, :5, :6, :7, :8); end;';
    c_messages constant varchar2(100 char) :=
        'select rowq.messages_json(:1, :2, :3) as messages from dual';
    v_queue_id         rowq_queue.queue_id%type;
    v_claim_id         rowq_claim.claim_id%type;
    v_lease_until      rowq_claim.lease_until%type;
    v_until            timestamp(6);
    v_left             number;
    v_pause            number := 0.02;
    v_lock             number;
    v_is_poller        boolean := false;
    v_has_wakeup_queue boolean := false;
    v_waiting_until    timestamp(6);
begin
    if dbms_transaction.local_transaction_id is not null then
        raise_application_error(
            -20713,
            'RQ713 wrong_transaction_state: dequeue_wait commits while it waits;'
            || ' call it outside a transaction'
        );
    end if;
    if p_wait_seconds is null then
        internal_refuse('wait_seconds must be between 0 and 3600, got null');
    end if;
    internal_check_range('wait_seconds', p_wait_seconds, 0, 3600);
    v_until := sys_extract_utc(systimestamp) + numtodsinterval(p_wait_seconds, 'second');

    begin
        loop
            execute immediate c_poll
                using in p_queue_name, in p_batch_size, in p_worker_name, in p_lease_seconds,
                in v_waiting_until, out v_queue_id, out v_claim_id, out v_lease_until;
            commit;
            v_left := internal_seconds_since(sys_extract_utc(systimestamp), v_until);
            exit when v_claim_id is not null or v_left <= 0;

            if v_lock is null and v_left >= 1 then
                v_lock := internal_poller_lock_number(v_queue_id);
                v_has_wakeup_queue := internal_has_wakeup_queue;
            end if;
            if v_left < 1 or v_lock = 0 or (v_is_poller and not v_has_wakeup_queue) then
                dbms_session.sleep(least(v_pause, v_left));
                v_pause := least(v_pause * 2, 0.25);
            elsif v_is_poller then
                internal_wait_for_wakeup(v_queue_id, v_waiting_until, v_has_wakeup_queue);
                commit;
            else
                -- One waiter polls for all. The others wait for its lock, and poll once a second in
                -- case the lock was left behind.
                v_is_poller := internal_try_become_poller(v_lock);
            end if;
        end loop;
        if v_is_poller then
            internal_stop_polling(v_lock);
        end if;
    exception
        when others then
            -- No transaction was open when the call began, so this one belongs to the call.
            rollback;
            if v_is_poller then
                internal_stop_polling(v_lock);
            end if;
            raise;
    end;

    open p_rows for c_messages using v_queue_id, v_claim_id, v_lease_until;
end dequeue_wait;
