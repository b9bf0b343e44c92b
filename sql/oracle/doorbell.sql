-- Optional: a doorbell, so that a session in dequeue_wait sleeps until a message is committed and
-- need not look four times a second. Run it as the owner in SQL*Plus or SQLcl, in this folder;
-- running it again makes everything anew, and upgrades of rowq keep it. The owner needs, given
-- directly and not by a role: execute on dbms_aq, dbms_aqadm and dbms_lock. Remove it with
-- doorbell_off.sql.
--
-- A ring is a message of Advanced Queuing without content, sent in the transaction that makes a
-- message of rowq ready, so it is heard at the commit and on every node. Who enqueues rings only
-- while somebody listens, once for all its messages, and waits for nobody. Nothing is lost with a
-- ring: who listens looks once a second. dbms_alert would let all who enqueue wait for each other's
-- commit, and dbms_pipe rings before the commit, on one node.
@@doorbell_off.sql
begin
    dbms_aqadm.create_queue_table(
        queue_table        => 'ROWQ_DOORBELL_TABLE',
        queue_payload_type => 'RAW',
        multiple_consumers => false,
        comment            => 'rings for who waits at a queue of rowq'
    );
    dbms_aqadm.create_queue(
        queue_name  => 'ROWQ_DOORBELL_QUEUE',
        queue_table => 'ROWQ_DOORBELL_TABLE'
    );
    dbms_aqadm.start_queue(queue_name => 'ROWQ_DOORBELL_QUEUE');
end;
/
-- internal_ring_doorbell and internal_wait_for_ring call this package by its name. It is the only
-- one of rowq that keeps state; losing that (ORA-04068) costs a ring.
create or replace package rowq_doorbell authid definer as

    -- To be heard at the commit. Once a transaction is enough. Where a savepoint has taken the ring
    -- back, who listens hears of what came later within a second.
    procedure ring(p_part_id in number);

    -- Wait for a ring, for a second at most, and take all that there are.
    procedure listen(p_part_id in number);

end rowq_doorbell;
/
create or replace package body rowq_doorbell as

    type t_parts is table of boolean index by pls_integer;
    v_transaction varchar2(100 char);
    v_rung        t_parts;

    function queue_name
    return varchar2
    is
    begin
        -- The account with whose rights this runs: the owner.
        return sys_context('userenv', 'current_user') || '.ROWQ_DOORBELL_QUEUE';
    end queue_name;

    procedure ring(p_part_id in number)
    is
        v_now        constant varchar2(100 char) := dbms_transaction.local_transaction_id;
        c_nothing    constant raw(1) := hextoraw('00');
        v_options    dbms_aq.enqueue_options_t;
        v_properties dbms_aq.message_properties_t;
        v_id         raw(16);
    begin
        if v_transaction is null or v_now is null or v_transaction <> v_now then
            v_rung.delete;
            v_transaction := v_now;
        end if;
        if v_rung.exists(p_part_id) then
            return;
        end if;
        v_options.visibility := dbms_aq.on_commit;
        v_properties.correlation := to_char(p_part_id, 'fm9999999999');
        dbms_aq.enqueue(
            queue_name         => queue_name,
            enqueue_options    => v_options,
            message_properties => v_properties,
            payload            => c_nothing,
            msgid              => v_id
        );
        v_rung(p_part_id) := true;
    end ring;

    procedure listen(p_part_id in number)
    is
        -- Nothing came in time.
        e_silence exception;
        pragma exception_init(e_silence, -25228);
        v_options    dbms_aq.dequeue_options_t;
        v_properties dbms_aq.message_properties_t;
        v_payload    raw(1);
        v_id         raw(16);
    begin
        v_options.dequeue_mode := dbms_aq.remove;
        -- From the start each time: what is committed while this waits may stand before the rest.
        v_options.navigation := dbms_aq.first_message;
        v_options.visibility := dbms_aq.immediate;
        v_options.correlation := to_char(p_part_id, 'fm9999999999');
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
    end listen;

end rowq_doorbell;
/
@@compiled.sql
