procedure cancel_many(
    p_queue_name       in varchar2,
    p_message_type     in varchar2 default null,
    p_group_key        in varchar2 default null,
    p_header_name      in varchar2 default null,
    p_header_value     in clob default null,
    p_enqueued_before  in timestamp default null,
    p_after_message_id in number default 0,
    p_max_messages     in number default 1000,
    p_rows             out sys_refcursor
)
is
-- routine   cancel_many
-- version   1
-- purpose   Cancel messages that match all given filters and that no worker holds.
-- promise   P15
-- locks     as cancel
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is searched for among all ready messages of the
--           queue
    v_type          constant raw(32767) := utl_raw.cast_to_raw(p_message_type);
    v_key           constant raw(32767) := utl_raw.cast_to_raw(p_group_key);
    v_queue         t_queue;
    v_ids           rowq_ids := rowq_ids();
    v_messages      t_messages;
    v_scanned       pls_integer := 0;
    v_last_id       rowq_message.message_id%type;
    v_cancelled     number;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    if p_header_name is null and p_header_value is not null
       or p_header_name is not null and p_header_value is null then
        internal_refuse('header_name and header_value must be set together');
    end if;
    internal_check_header_name(p_header_name);
    if p_message_type is null and p_group_key is null and p_header_name is null
       and p_enqueued_before is null then
        internal_refuse(
            'a filter is required: message_type, group_key, header_name, enqueued_before'
        );
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- Compare bytes: NLS_COMP and NLS_SORT change how the session compares texts.
    for each_message in (
        select /*+ index_rs_asc(m rowq_message_pk) */
               m.message_id, m.message_type, m.group_key, m.enqueued_at, m.headers
        from rowq_message m
        where m.queue_id = v_queue.queue_id
          and m.message_id > coalesce(p_after_message_id, 0)
        order by m.queue_id, m.message_id
        fetch first p_max_messages rows only
    ) loop
        v_scanned := v_scanned + 1;
        v_last_id := each_message.message_id;
        if (v_type is null or utl_raw.cast_to_raw(each_message.message_type) = v_type)
           and (v_key is null or utl_raw.cast_to_raw(each_message.group_key) = v_key)
           and (p_enqueued_before is null or each_message.enqueued_at < p_enqueued_before)
           and (
               p_header_name is null
               or internal_has_header(each_message.headers, p_header_name, p_header_value)
           ) then
            v_ids.extend;
            v_ids(v_ids.last) := each_message.message_id;
        end if;
    end loop;

    -- Skip leased messages, and finished ones that wait for the archiver: they would be searched
    -- for among all ready messages.
    if v_ids.count > 0 then
        v_ids := internal_waiting_of(v_queue.queue_id, v_ids);
    end if;
    if v_ids.count > 0 then
        v_messages := internal_pop_waiting(v_queue.queue_id, v_ids);
        internal_finish(v_queue, v_messages, 'cancelled');
    end if;
    v_cancelled := v_messages.count;
    if v_scanned < p_max_messages then
        v_last_id := null;
    end if;

    open p_rows for
        select v_cancelled as cancelled, v_last_id as after_message_id
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end cancel_many;
