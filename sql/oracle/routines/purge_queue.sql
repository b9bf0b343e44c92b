procedure purge_queue(
    p_queue_name   in varchar2,
    p_include_dead in number default 0,
    p_max_messages in number default null,
    p_rows         out sys_refcursor
)
is
-- routine   purge_queue
-- version   1
-- purpose   Delete ready, delayed and blocked messages; leased ones stay with their workers.
-- promise   P15
-- locks     blocked, group_waiting, ready, delayed and dead rows, skipping locked ones; then as
--           complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_removed       number;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    if p_include_dead not in (0, 1) then
        internal_refuse('include_dead must be 0 or 1');
    end if;
    internal_check_whole('max_messages', p_max_messages, 1, 10000);
    v_queue := internal_require_queue(p_queue_name);
    -- Purged messages are not archived.
    v_queue.archive_days := 0;

    -- Purge blocked messages first: nothing may resume them or pass a slot to them.
    v_removed := internal_purge_blocked(v_queue, p_max_messages);
    v_removed := v_removed
        + internal_purge_group_waiting(v_queue, p_max_messages - v_removed);
    v_removed := v_removed
        + internal_purge_ready(v_queue, p_max_messages - v_removed);
    v_removed := v_removed
        + internal_purge_waiting(v_queue, false, p_max_messages - v_removed);
    if p_include_dead = 1 then
        v_removed := v_removed
            + internal_purge_waiting(v_queue, true, p_max_messages - v_removed);
    end if;

    open p_rows for
        select v_removed as removed
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end purge_queue;
