procedure internal_store_bound(
    p_queue in t_bound_queue,
    p_new   in out nocopy t_new_messages,
    p_sent  in out nocopy rowq_sent_list
)
is
-- routine   internal_store_bound
-- purpose   Store messages in a queue that is bound to their topics, and append a row for each to the result.
-- promise   P01 P05 P12 P35
-- locks     as internal_store
-- differs   no such helper elsewhere: other engines call enqueue or a helper of it
    -- ORA-20701 (queue_not_found): the queue was dropped since a serializable transaction began,
    -- which sees it still.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -20701);
    e_cannot_serialize exception;
    pragma exception_init(e_cannot_serialize, -8177);
begin
    internal_store(p_queue.part_id, p_queue.queue_name, p_new);
    internal_ring_doorbell(p_queue.part_id, p_queue.listened_until);
    for i in 1 .. p_new.count loop
        p_sent.extend;
        p_sent(p_sent.last) := rowq_sent(
            p_sent.last, p_new(i).place, p_queue.queue_name, p_new(i).message_id, p_new(i).outcome
        );
    end loop;
exception
    when e_no_queue then
        raise e_cannot_serialize;
end internal_store_bound;
