procedure wait_for_result(
    p_queue_name   in varchar2,
    p_message_id   in number,
    p_wait_seconds in number default 20,
    p_rows         out sys_refcursor
)
is
-- routine   wait_for_result
-- version   1
-- purpose   Return like get_result, but wait until the message has ended or the time is up.
-- promise   P17 P32
-- locks     none
-- commits   after each poll, so that no snapshot is held while it waits; refuses an open
--           transaction
-- errors    RQ701 RQ711 RQ713
-- differs   returns one JSON object, in a result of one row and column; in package rowq_wait
    -- Call package rowq by dynamic SQL, so that it is in use only during a poll and can be replaced
    -- while sessions wait.
    c_poll   constant varchar2(100 char) :=
        'begin rowq.poll_result_once(:1, :2, :3, :4, :5, :6, :7); end;';
    c_answer constant varchar2(100 char) :=
        'select rowq.result_json(:1, :2, :3, :4) as answer from dual';
    v_queue_id    rowq_queue.queue_id%type;
    v_state       varchar2(20 char);
    v_finished_at timestamp(6);
    v_until       timestamp(6);
    v_left        number;
    v_pause       number;
    v_is_first    number := 1;
    v_is_last     number;
begin
    if dbms_transaction.local_transaction_id is not null then
        raise_application_error(
            -20713,
            'RQ713 wrong_transaction_state: wait_for_result commits while it waits; call it outside'
            || ' a transaction'
        );
    end if;
    if p_wait_seconds is null then
        internal_refuse('wait_seconds must be between 0 and 3600, got null');
    end if;
    internal_check_range('wait_seconds', p_wait_seconds, 0, 3600);
    v_until := sys_extract_utc(systimestamp) + numtodsinterval(p_wait_seconds, 'second');

    -- Each poll is its own transaction, so that a serializable session sees new rows.
    commit;
    loop
        v_is_last := case when sys_extract_utc(systimestamp) >= v_until then 1 else 0 end;
        execute immediate c_poll
            using in p_queue_name, in p_message_id, in v_is_first, in v_is_last, out v_queue_id,
            out v_state, out v_finished_at;
        commit;
        exit when v_finished_at is not null
            or v_is_last = 1
            or (v_is_first = 1 and v_state is null);
        v_is_first := 0;
        v_left := internal_seconds_since(sys_extract_utc(systimestamp), v_until);
        v_pause := least(coalesce(v_pause * 2, 0.02), 0.25);
        dbms_session.sleep(greatest(least(v_pause, v_left), 0));
    end loop;

    open p_rows for c_answer using v_queue_id, p_message_id, v_state, v_finished_at;
end wait_for_result;
