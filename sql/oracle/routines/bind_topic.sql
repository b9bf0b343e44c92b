procedure bind_topic(
    p_queue_name    in varchar2,
    p_topic_pattern in varchar2,
    p_rows          out sys_refcursor
)
is
-- routine   bind_topic
-- version   1
-- purpose   Bind a queue to the topics that match a pattern.
-- promise   P15 P35
-- locks     the table topic_binding against drop_queue; a new row of it; waits for a session that
--           inserts the same row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    -- ORA-02291 (parent key not found): a serializable transaction still sees a dropped queue.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    v_error         varchar2(32767);
    v_queue         t_queue;
    v_prefix        varchar2(200 char);
    v_shape         varchar2(100 char);
    v_key           raw(200);
    v_prefix_key    raw(200);
    v_outcome       varchar2(20 char) := 'bound';
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_error := internal_topic_error('topic_pattern', p_topic_pattern, true);
    if v_error is not null then
        internal_refuse(v_error);
    end if;
    v_queue := internal_lock_bindings(p_queue_name);
    internal_read_pattern(p_topic_pattern, v_prefix, v_shape);
    v_key := utl_raw.cast_to_raw(p_topic_pattern);
    v_prefix_key := internal_prefix_key(v_prefix);

    begin
        insert into rowq_topic_binding (queue_id, pattern_key, topic_pattern, prefix_key, shape)
        values (v_queue.queue_id, v_key, p_topic_pattern, v_prefix_key, v_shape);
    exception
        when e_no_queue then
            internal_refuse_queue(p_queue_name);
        when dup_val_on_index then
            v_outcome := 'exists';
    end;

    open p_rows for
        select p_queue_name as queue_name, p_topic_pattern as topic_pattern, v_outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end bind_topic;
