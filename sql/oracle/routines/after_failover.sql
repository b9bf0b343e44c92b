procedure after_failover(p_rows out sys_refcursor)
is
-- routine   after_failover
-- version   1
-- purpose   Continue numbers far beyond those that another server may have given out.
-- promise   P08 P46
-- locks     the row schema_version of meta, until the caller's transaction ends, so that two calls
--           do not give out the same numbers
-- commits   an autonomous transaction for each sequence, as DDL commits; never the caller's
-- errors    none
-- differs   nothing
    -- More than a server gives out between two states of its replica.
    c_jump          constant number := 1000000000;
    c_queues        constant number := 1000;
    v_was_message   number;
    v_was_claim     number;
    v_was_queue     number;
    v_message_id    number;
    v_claim_id      number;
    v_queue_id      number;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    -- The lock outlasts the autonomous transactions of the changes below.
    update rowq_meta m
    set m.value = m.value
    where m.name = 'schema_version';
    internal_stored_numbers(v_message_id, v_claim_id, v_queue_id);

    v_was_message := internal_last_number('rowq_message_seq');
    v_was_claim := internal_last_number('rowq_claim_seq');
    v_was_queue := internal_last_number('rowq_queue_seq');
    v_message_id := greatest(v_was_message, v_message_id) + c_jump;
    v_claim_id := greatest(v_was_claim, v_claim_id) + c_jump;
    v_queue_id := greatest(v_was_queue, v_queue_id) + c_queues;
    internal_advance_sequence('rowq_message_seq', v_message_id);
    internal_advance_sequence('rowq_claim_seq', v_claim_id);
    internal_advance_sequence('rowq_queue_seq', v_queue_id);

    open p_rows for
        select 'claim' as name, v_was_claim as was, v_claim_id as is_now
        from dual
        union all
        select 'message', v_was_message, v_message_id
        from dual
        union all
        select 'queue', v_was_queue, v_queue_id
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end after_failover;
