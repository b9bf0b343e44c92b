procedure list_dead(
    p_queue_name       in varchar2,
    p_after_message_id in number default 0,
    p_max_messages     in number default 100,
    p_rows             out sys_refcursor
)
is
-- routine   list_dead
-- version   1
-- purpose   Dead messages, without their bodies, in the order of their ids.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    v_queue := internal_require_queue(p_queue_name);

    open p_rows for
        select /*+ leading(h m) use_nl(m) index(m rowq_message_pk) */
               h.message_id, trunc(h.lane / 2) as priority, h.attempt, m.message_type,
               m.enqueued_at, h.died_at, m.last_error
        from (
            select /*+ index_rs_asc(d rowq_dead_pk) */
                   d.part_id, d.message_id, d.lane, d.attempt, d.died_at
            from rowq_dead d
            where d.part_id = v_queue.part_id
              and d.message_id > coalesce(p_after_message_id, 0)
            order by d.part_id, d.message_id
            fetch first p_max_messages rows only
        ) h
        join rowq_message m
          on m.part_id = h.part_id
         and m.message_id = h.message_id
        order by h.message_id;
end list_dead;
