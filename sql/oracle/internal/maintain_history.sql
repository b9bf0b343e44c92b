function internal_maintain_history(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_maintain_history
-- purpose   Run the history part of maintain, a queue's first p_limit old attempts; an error in it is noted, not raised.
-- promise   P13 P37
-- locks     as internal_purge_history; with a fault a row of meta
-- differs   a fault is noted in meta, where health reads it: this engine's calls have no warnings
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_fault rowq_meta.value%type;
begin
    savepoint rowq_history_part;
    return internal_purge_history(p_queue, p_limit);
exception
    when e_cancelled then
        raise;
    when others then
        -- An error in the history is only noted, because housekeeping must go on. The archive has
        -- noted its own state before, and does so again before the next one of the history.
        v_fault := substr('history: ' || sqlerrm, 1, 500);
        rollback to savepoint rowq_history_part;
        internal_note_fault(p_queue.part_id, v_fault);
        return 0;
end internal_maintain_history;
