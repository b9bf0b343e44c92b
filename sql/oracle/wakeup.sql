-- Optional: create a wake-up queue, so that a session in dequeue_wait sleeps until a message is
-- committed instead of polling 4 times a second. Run it as the owner in SQL*Plus or SQLcl, in this
-- folder. A second run creates everything again, and upgrades of rowq keep it. The owner needs
-- execute on dbms_aq, dbms_aqadm and dbms_lock, granted directly and not by a role. wakeup_off.sql
-- removes the wake-up queue. Not tested on SQL Server and Oracle.
--
-- A wake-up is an empty Advanced Queuing message, sent in the transaction that makes a message
-- ready, so it arrives at the commit and on every node. A producer sends one only while a session
-- waits, once for all its messages, and does not wait. A lost wake-up loses no message: waiters
-- poll once a second. dbms_alert would make producers wait for each other's commits; dbms_pipe
-- would wake before the commit and on one node only.
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
-- internal_wake_waiters and internal_wait_for_wakeup call this package by name. It is the only
-- package of rowq with state; a session that loses it (ORA-04068) loses a wake-up.
create or replace package rowq_wakeup authid definer as

    -- Send a wake-up that arrives at the commit, once per transaction. If a rollback to a savepoint
    -- removes it, no other is sent, and waiters find the messages within a second.
    procedure wake(p_queue_id in number);

    -- Wait for a wake-up, for a second at most, and receive all that there are.
    procedure await(p_queue_id in number);

end rowq_wakeup;
/
create or replace package body rowq_wakeup as

    type t_queues is table of boolean index by pls_integer;
    v_transaction raw(100);
    v_woken       t_queues;

    function queue_name
    return varchar2
    is
    begin
        -- current_user is the owner, with definer's rights. Its name may be in lower case.
        return dbms_assert.enquote_name(sys_context('userenv', 'current_user'), false)
            || '.ROWQ_WAKEUP_QUEUE';
    end queue_name;

    procedure wake(p_queue_id in number)
    is
        -- Compare the id as bytes: text comparison depends on the session's NLS_SORT.
        v_now        constant raw(100) :=
            utl_raw.cast_to_raw(dbms_transaction.local_transaction_id);
        c_nothing    constant raw(1) := hextoraw('00');
        v_options    dbms_aq.enqueue_options_t;
        v_properties dbms_aq.message_properties_t;
        v_id         raw(16);
    begin
        if v_transaction is null or v_now is null or v_transaction <> v_now then
            v_woken.delete;
            v_transaction := v_now;
        end if;
        if v_woken.exists(p_queue_id) then
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
        v_woken(p_queue_id) := true;
    end wake;

    procedure await(p_queue_id in number)
    is
        -- ORA-25228: no wake-up came in time.
        e_timeout exception;
        pragma exception_init(e_timeout, -25228);
        v_options    dbms_aq.dequeue_options_t;
        v_properties dbms_aq.message_properties_t;
        v_payload    raw(1);
        v_id         raw(16);
    begin
        v_options.dequeue_mode := dbms_aq.remove;
        -- Start each dequeue at the first message: a wake-up committed during the wait may precede
        -- the others.
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
        when e_timeout then
            null;
    end await;

end rowq_wakeup;
/
@@compiled.sql
