procedure list_topics(
    p_queue_name in varchar2 default null,
    p_rows       out sys_refcursor
)
is
-- routine   list_topics
-- version   1
-- purpose   List the topic patterns of one queue or all, by queue name.
-- promise   P35
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    v_queue t_queue;
begin
    if p_queue_name is not null then
        v_queue := internal_require_queue(p_queue_name);
    end if;

    open p_rows for
        select q.queue_name, b.topic_pattern
        from rowq_queue q
        join rowq_topic_binding b on b.queue_id = q.queue_id
        where v_queue.queue_id is null
           or q.queue_id = v_queue.queue_id
        order by q.queue_key, b.pattern_key;
end list_topics;
