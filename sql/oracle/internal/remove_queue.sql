procedure internal_remove_queue(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_force      in boolean
)
is
-- routine   internal_remove_queue
-- purpose   Remove an empty queue, or with p_force a full one, when for a moment nobody writes.
-- promise   P02 P15
-- locks     the tables against writers, waiting for a second at most for each of three of them, and
--           not for the others; all rows of the queue
-- errors    RQ704 RQ705
-- differs   nothing: as on PostgreSQL, tables are locked, as a row cannot be locked in share mode
    e_busy exception;
    e_timeout exception;
    e_deadlock exception;
    pragma exception_init(e_busy, -54);
    pragma exception_init(e_timeout, -30006);
    pragma exception_init(e_deadlock, -60);
begin
    -- Wait for open enqueues, because their messages are not visible yet, and for open calls of
    -- workers and of schedules. While this waits for a table, all who come to write it wait behind
    -- it, whatever their queue. So it holds no table while it waits for another one, and then takes
    -- all that are free or none.
    begin
        savepoint rowq_drop_part;
        lock table rowq_schedule in share row exclusive mode wait 1;
        rollback to savepoint rowq_drop_part;
        lock table rowq_claim in share row exclusive mode wait 1;
        rollback to savepoint rowq_drop_part;
        lock table rowq_message in share row exclusive mode wait 1;
        lock table rowq_schedule, rowq_topic_binding, rowq_worker, rowq_gate, rowq_claim,
            rowq_leased, rowq_ready, rowq_delayed, rowq_door, rowq_grouped, rowq_message_group,
            rowq_recheck, rowq_successor, rowq_blocked, rowq_dead, rowq_finished, rowq_archive,
            rowq_started, rowq_expiry, rowq_result, rowq_history, rowq_lane, rowq_queue
            in share row exclusive mode nowait;
    exception
        when e_busy or e_timeout or e_deadlock then
            raise_application_error(
                -20705, 'RQ705 queue_busy: open transactions hold the tables; try again'
            );
    end;
    if not p_force then
        internal_refuse_not_empty(p_part_id, p_queue_name);
    end if;
    internal_delete_queue(p_part_id);
    internal_note_fault(p_part_id, null);
end internal_remove_queue;
