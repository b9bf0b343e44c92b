procedure alter_message(
    p_queue_name     in varchar2,
    p_message_id     in number,
    p_body           in clob default null,
    p_body_binary    in blob default null,
    p_message_type   in varchar2 default null,
    p_headers        in clob default null,
    p_priority       in number default null,
    p_delay_seconds  in number default null,
    p_run_at         in timestamp default null,
    p_max_attempts   in number default null,
    p_expire_seconds in number default null,
    p_rows           out sys_refcursor
)
is
-- routine   alter_message
-- version   1
-- purpose   Change a waiting or dead message; null leaves a value unchanged.
-- promise   P15 P20 P21 P22 P36 P39
-- locks     a blocked, dead, delayed, group_waiting or ready row, skipped if locked; the message
--           row: waits for a producer that has just named it as a predecessor; new delayed, ready
--           and expiry rows; as internal_release_group_slots
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    c_now           constant timestamp(6) := sys_extract_utc(systimestamp);
    v_error         varchar2(32767);
    v_queue         t_queue;
    v_place         varchar2(20 char);
    v_key           raw(800);
    v_row           t_locked_row;
    v_due_at        timestamp(6);
    v_expires_at    timestamp(6);
    v_ids           rowq_ids := rowq_ids();
    v_none          t_messages;
    v_lines         rowq_lines;
    v_outcome       varchar2(20 char);
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    if p_message_id is null then
        internal_refuse('message_id is required');
    end if;
    if p_body is null
       and p_body_binary is null
       and p_message_type is null
       and p_headers is null
       and p_priority is null
       and p_delay_seconds is null
       and p_run_at is null
       and p_max_attempts is null
       and p_expire_seconds is null then
        internal_refuse('at least one value to change is required');
    end if;
    v_error := internal_message_error(
        p_body, p_body_binary, p_message_type, p_headers, coalesce(p_priority, 5), p_delay_seconds,
        p_run_at, null, p_max_attempts, null, null, nullif(p_expire_seconds, 0), null
    );
    if v_error is not null then
        internal_refuse(v_error);
    end if;
    v_queue := internal_require_queue(p_queue_name);
    v_error := internal_body_error(p_body, p_body_binary, v_queue.max_body_length);
    if v_error is not null then
        internal_refuse(v_error);
    end if;

    v_due_at := coalesce(p_run_at, c_now + numtodsinterval(p_delay_seconds, 'second'));
    if v_due_at < c_now then
        v_due_at := c_now;
    end if;
    v_expires_at := c_now + numtodsinterval(nullif(p_expire_seconds, 0), 'second');

    internal_lock_waiting(v_queue.queue_id, p_message_id, v_place, v_key, v_row);
    if v_place = 'dead' and v_due_at is not null then
        v_outcome := 'dead';
        v_due_at := null;
    elsif v_place is not null then
        if p_body is not null
           or p_body_binary is not null
           or p_message_type is not null
           or p_headers is not null
           or p_max_attempts is not null
           or p_expire_seconds is not null then
            update rowq_message m
            set m.body         = case when p_body_binary is null then nvl(p_body, m.body) end,
                m.body_binary  = case
                    when p_body is null then nvl(p_body_binary, m.body_binary)
                end,
                m.message_type = coalesce(p_message_type, m.message_type),
                m.headers      = nvl(p_headers, m.headers),
                m.max_attempts = coalesce(p_max_attempts, m.max_attempts),
                m.expires_at   = case
                    when p_expire_seconds is null then m.expires_at
                    else v_expires_at
                end
            where m.queue_id = v_queue.queue_id
              and m.message_id = p_message_id;
        end if;
        internal_alter_waiting(
            v_queue.queue_id, v_place, v_key, v_row, p_priority, c_now, p_expire_seconds > 0,
            v_due_at
        );
        v_outcome := 'altered';
        internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);
    else
        v_ids.extend;
        v_ids(1) := p_message_id;
        v_lines := internal_outcomes(v_ids, v_none, 'altered', 'not_found');
        internal_set_leased(v_queue.queue_id, v_lines);
        v_outcome := v_lines(1).outcome;
        v_due_at := null;
    end if;

    open p_rows for
        select p_message_id as message_id, v_outcome as outcome, v_due_at as due_at
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end alter_message;
