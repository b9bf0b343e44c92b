procedure list_dead(
    p_queue_name        in varchar2,
    p_after_message_id  in number default 0,
    p_max_messages      in number default 100,
    p_before_message_id in number default null,
    p_message_type      in varchar2 default null,
    p_rows              out sys_refcursor
)
is
-- routine   list_dead
-- version   1
-- purpose   List dead messages by id, forwards or backwards, without bodies.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    -- A type has at most 200 characters, and SQL takes at most 2000 bytes. Compare bytes: NLS_COMP
    -- and NLS_SORT change how the session compares texts.
    v_type  constant raw(804) := utl_raw.cast_to_raw(substr(p_message_type, 1, 201));
    v_queue t_queue;
begin
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    v_queue := internal_require_queue(p_queue_name);

    if p_before_message_id is null then
        open p_rows for
            select /*+ leading(h m) use_nl(m) index(m rowq_message_pk) */
                   h.message_id, trunc(h.lane / 2) as priority, h.attempt, m.message_type,
                   m.enqueued_at, h.died_at, m.last_error
            from (
                select /*+ index_rs_asc(d rowq_dead_pk) */
                       d.queue_id, d.message_id, d.lane, d.attempt, d.died_at
                from rowq_dead d
                where d.queue_id = v_queue.queue_id
                  and d.message_id > coalesce(p_after_message_id, 0)
                  and (v_type is null or v_type = (
                      select /*+ index(x rowq_message_pk) */ hextoraw(rawtohex(x.message_type))
                      from rowq_message x
                      where x.queue_id = d.queue_id
                        and x.message_id = d.message_id
                  ))
                order by d.queue_id, d.message_id
                fetch first p_max_messages rows only
            ) h
            join rowq_message m
              on m.queue_id = h.queue_id
             and m.message_id = h.message_id
            order by h.message_id;
    else
        open p_rows for
            select /*+ leading(h m) use_nl(m) index(m rowq_message_pk) */
                   h.message_id, trunc(h.lane / 2) as priority, h.attempt, m.message_type,
                   m.enqueued_at, h.died_at, m.last_error
            from (
                select /*+ index_rs_desc(d rowq_dead_pk) */
                       d.queue_id, d.message_id, d.lane, d.attempt, d.died_at
                from rowq_dead d
                where d.queue_id = v_queue.queue_id
                  and d.message_id > coalesce(p_after_message_id, 0)
                  and d.message_id < p_before_message_id
                  and (v_type is null or v_type = (
                      select /*+ index(x rowq_message_pk) */ hextoraw(rawtohex(x.message_type))
                      from rowq_message x
                      where x.queue_id = d.queue_id
                        and x.message_id = d.message_id
                  ))
                order by d.queue_id desc, d.message_id desc
                fetch first p_max_messages rows only
            ) h
            join rowq_message m
              on m.queue_id = h.queue_id
             and m.message_id = h.message_id
            order by h.message_id desc;
    end if;
end list_dead;
