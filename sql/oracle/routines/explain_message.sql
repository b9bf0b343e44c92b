procedure explain_message(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
-- routine   explain_message
-- version   1
-- purpose   Return the reasons why a message is not delivered now, and what would change them.
-- promise   P42
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message in an open transaction is behind or next, because only a lock shows it
    v_queue       t_queue;
    v_now         constant timestamp(6) := sys_extract_utc(systimestamp);
    v_reasons     rowq_reasons := rowq_reasons();
    v_due_at      timestamp(6);
    v_state       varchar2(20 char);
    v_ended       varchar2(20 char);
    v_lane        number;
    v_attempt     number;
    v_claim_id    number;
    v_worker_name rowq_claim.worker_name%type;
    v_leased_at   timestamp(6);
    v_lease_until timestamp(6);
    v_finished_at timestamp(6);
    v_expires_at  timestamp(6);
    v_first       timestamp(6);
    v_is_known    pls_integer;
    v_is_paused   pls_integer;
    v_group_key   rowq_message.group_key%type;
    v_waits_for   number;
begin
    if p_message_id is null then
        internal_refuse('message_id is required');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    select count(q.paused_at) into v_is_paused
    from rowq_queue q
    where q.queue_id = v_queue.queue_id;

    select count(*), max(m.due_at), max(m.group_key), max(m.expires_at)
    into v_is_known, v_due_at, v_group_key, v_expires_at
    from rowq_message m
    where m.queue_id = v_queue.queue_id
      and m.message_id = p_message_id;
    if v_is_known = 1 then
        internal_locate_messages(
            v_queue.queue_id, p_message_id, v_group_key, v_due_at, v_state, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_finished_at, v_waits_for, v_leased_at
        );
    else
        select max(a.state) into v_ended
        from rowq_archive a
        where a.queue_id = v_queue.queue_id
          and a.message_id = p_message_id;
        if v_ended is null then
            select max(r.state) into v_ended
            from rowq_result r
            where r.queue_id = v_queue.queue_id
              and r.message_id = p_message_id;
        end if;
    end if;
    if v_state in ('completed', 'cancelled', 'expired') then
        v_ended := v_state;
    end if;

    if v_ended is not null then
        internal_add_reason(v_reasons, 'ended', 'it has ended: ' || v_ended);
    elsif v_state is null then
        internal_add_reason(
            v_reasons, 'unknown',
            'it is not in the queue: not committed, rolled back, or ended with nothing kept'
        );
    elsif v_state = 'dead' then
        internal_add_reason(v_reasons, 'dead', 'it is dead; reset makes it ready');
    elsif v_state = 'leased' then
        internal_add_reason(
            v_reasons,
            case
                when v_claim_id is null then 'held'
                when v_lease_until <= v_now then 'lease_expired'
                else 'leased'
            end,
            case
                when v_claim_id is null then 'another session is moving it in an open transaction'
                when v_lease_until <= v_now
                    then 'its lease has expired; the next maintain returns it'
                else 'a worker holds it until the worker finishes it or its lease expires'
            end,
            v_lease_until, null, v_claim_id, v_worker_name
        );
    else
        if v_is_paused > 0 then
            internal_add_reason(
                v_reasons, 'paused', 'the queue is paused; resume_queue ends the pause'
            );
        end if;
        if v_state = 'blocked' then
            internal_explain_blocked(v_queue, p_message_id, v_group_key, v_reasons);
        end if;
        if v_state = 'delayed' or v_state = 'blocked' and v_due_at > v_now then
            internal_add_reason(
                v_reasons, case when v_due_at > v_now then 'delayed' else 'overdue' end,
                case
                    when v_due_at > v_now then 'it waits for its time; alter_message changes it'
                    else 'its time has come; the next maintain makes it ready'
                end,
                v_due_at
            );
        end if;
        if v_state = 'ready' then
            internal_explain_ready(v_queue, p_message_id, v_lane, v_reasons);
        end if;
        if v_expires_at is not null then
            internal_add_reason(
                v_reasons, 'expires', 'maintain expires it from this time on', v_expires_at
            );
        end if;
    end if;

    for i in 1 .. v_reasons.count loop
        v_first := least(
            coalesce(v_first, v_reasons(i).clears_at), coalesce(v_reasons(i).clears_at, v_first)
        );
    end loop;
    if v_first < v_now - interval '5' second then
        internal_add_reason(
            v_reasons, 'no_maintain',
            'maintain is late by more than 5 seconds; run a worker, or call maintain'
        );
    end if;

    open p_rows for
        select n.reason, n.clears_at, n.blocking_id, n.claim_id, n.worker_name, n.detail
        from table(v_reasons) n
        order by n.place;
end explain_message;
