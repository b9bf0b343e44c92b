procedure discard_dead(
    p_queue_name   in varchar2,
    p_message_ids  in clob default null,
    p_max_messages in number default 1000,
    p_message_type in varchar2 default null,
    p_died_before  in timestamp default null,
    p_rows         out sys_refcursor
)
is
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages; they do not go to the archive.
-- promise   P12 P22 P26
-- locks     dead rows, skipping locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_locked        t_locked_rows;
    v_messages      t_messages;
    v_removed       number;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_lock_dead(
        p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before,
        v_queue, v_ids, v_locked
    );
    internal_delete_dead(v_locked, v_messages);
    -- Discarded messages do not go to the archive.
    v_queue.archive_days := 0;
    internal_finish(v_queue, v_messages, 'cancelled');
    v_removed := v_messages.count;

    open p_rows for
        select v_removed as removed
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end discard_dead;
