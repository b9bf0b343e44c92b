-- Optional: this makes a wake-up queue, so that a session in dequeue_wait sleeps until a message is
-- committed and need not look four times a second. Run it as the owner in SQL*Plus or SQLcl, in
-- this folder; a second run makes everything anew, and upgrades of rowq keep it. The owner needs
-- execute on dbms_aq, dbms_aqadm and dbms_lock, granted directly and not by a role.
-- wakeup_off.sql removes the wake-up queue.
--
-- A wake-up is a message of Advanced Queuing without content. It is sent in the transaction that
-- makes a message of rowq ready, so it arrives at the commit and on every node. A producer sends
-- one only while a session waits, once for all its messages, and waits for nobody. A lost wake-up
-- loses no message, because waiters poll once a second anyway. dbms_alert would let all producers
-- wait for each other's commit, and dbms_pipe would wake before the commit and on one node only.
@@wakeup_off.sql
begin
    dbms_aqadm.create_queue_table(
        queue_table        => 'ROWQ_WAKEUP_TABLE',
        queue_payload_type => 'RAW',
        multiple_consumers => false,
        comment            => 'wakes the sessions that wait at a queue of rowq'
    );
    dbms_aqadm.create_queue(
        queue_name  => 'ROWQ_WAKEUP_QUEUE',
        queue_table => 'ROWQ_WAKEUP_TABLE'
    );
    dbms_aqadm.start_queue(queue_name => 'ROWQ_WAKEUP_QUEUE');
end;
/
-- internal_wake_waiters and internal_wait_for_wakeup call this package by its name. It is the only
-- one of rowq that keeps state; a session that loses the state (ORA-04068) loses a wake-up.
create or replace package rowq_wakeup authid definer as

    -- wake sends a wake-up that arrives at the commit. Once a transaction is enough. If a rollback
    -- to a savepoint takes it back, the transaction sends none again, and waiters find what it adds
    -- later within a second.
    procedure wake(p_queue_id in number);

    -- await waits for a wake-up, for a second at most, and takes all that there are.
    procedure await(p_queue_id in number);

end rowq_wakeup;
/
create or replace package body rowq_wakeup as

    type t_parts is table of boolean index by pls_integer;
    v_transaction raw(100);
    v_rung        t_parts;

    function queue_name
    return varchar2
    is
    begin
        -- current_user is the account with whose rights this runs: the owner. Its name may be in
        -- lower case.
        return dbms_assert.enquote_name(sys_context('userenv', 'current_user'), false)
            || '.ROWQ_WAKEUP_QUEUE';
    end queue_name;

    procedure wake(p_queue_id in number)
    is
        -- The id is compared as bytes, because texts are compared as the session's NLS_SORT says.
        v_now        constant raw(100) :=
            utl_raw.cast_to_raw(dbms_transaction.local_transaction_id);
        c_nothing    constant raw(1) := hextoraw('00');
        v_options    dbms_aq.enqueue_options_t;
        v_properties dbms_aq.message_properties_t;
        v_id         raw(16);
    begin
        if v_transaction is null or v_now is null or v_transaction <> v_now then
            v_rung.delete;
            v_transaction := v_now;
        end if;
        if v_rung.exists(p_queue_id) then
            return;
        end if;
        v_options.visibility := dbms_aq.on_commit;
        v_properties.correlation := to_char(p_queue_id, 'fm9999999999');
        dbms_aq.enqueue(
            queue_name         => queue_name,
            enqueue_options    => v_options,
            message_properties => v_properties,
            payload            => c_nothing,
            msgid              => v_id
        );
        v_rung(p_queue_id) := true;
    end wake;

    procedure await(p_queue_id in number)
    is
        -- ORA-25228: no wake-up came in time.
        e_silence exception;
        pragma exception_init(e_silence, -25228);
        v_options    dbms_aq.dequeue_options_t;
        v_properties dbms_aq.message_properties_t;
        v_payload    raw(1);
        v_id         raw(16);
    begin
        v_options.dequeue_mode := dbms_aq.remove;
        -- Each dequeue looks from the start, because a wake-up that is committed while this waits
        -- may stand before the others.
        v_options.navigation := dbms_aq.first_message;
        v_options.visibility := dbms_aq.immediate;
        v_options.correlation := to_char(p_queue_id, 'fm9999999999');
        v_options.wait := 1;
        for i in 1 .. 1000 loop
            dbms_aq.dequeue(
                queue_name         => queue_name,
                dequeue_options    => v_options,
                message_properties => v_properties,
                payload            => v_payload,
                msgid              => v_id
            );
            v_options.wait := dbms_aq.no_wait;
        end loop;
    exception
        when e_silence then
            null;
    end await;

end rowq_wakeup;
/
@@compiled.sql
