procedure get_message(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
-- routine   get_message
-- version   1
-- purpose   Return the state of a message and all its data, or no row if unknown.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue       t_queue;
    v_due_at      timestamp(6);
    v_state       varchar2(20 char);
    v_lane        number;
    v_attempt     number;
    v_claim_id    number;
    v_worker_name rowq_claim.worker_name%type;
    v_leased_at   timestamp(6);
    v_lease_until timestamp(6);
    v_finished_at timestamp(6);
    v_is_known    pls_integer;
    v_group_key   rowq_message.group_key%type;
    v_waits_for   number;
begin
    if p_message_id is null then
        internal_refuse('message_id is required');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    select count(*), max(m.due_at), max(m.group_key) into v_is_known, v_due_at, v_group_key
    from rowq_message m
    where m.queue_id = v_queue.queue_id
      and m.message_id = p_message_id;

    if v_is_known = 1 then
        internal_locate_messages(
            v_queue.queue_id, p_message_id, v_group_key, v_due_at, v_state, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_finished_at, v_waits_for, v_leased_at
        );
        open p_rows for
            select /*+ leading(m c) use_nl(c) index(m rowq_message_pk) index(c rowq_claim_pk) */
                   m.message_id, v_state as state, trunc(v_lane / 2) as priority,
                   v_attempt as attempt,
                   coalesce(m.max_attempts, v_queue.max_attempts) as max_attempts, m.message_type,
                   m.headers, m.body, m.body_binary, m.dedup_key, m.enqueued_at,
                   v_due_at as due_at, v_claim_id as claim_id, v_worker_name as worker_name,
                   v_lease_until as lease_until, v_finished_at as finished_at, m.last_error,
                   m.group_key, v_waits_for as waits_for, m.expires_at,
                   c.progress, m.producer_name
            from rowq_message m
            left join rowq_claim c
              on c.queue_id = m.queue_id
             and c.claim_id = v_claim_id
            where m.queue_id = v_queue.queue_id
              and m.message_id = p_message_id;
    else
        open p_rows for
            select a.message_id, a.state, trunc(a.lane / 2) as priority, a.attempt,
                   cast(null as number) as max_attempts, a.message_type, a.headers, a.body,
                   a.body_binary, a.dedup_key, a.enqueued_at, cast(null as timestamp) as due_at,
                   cast(null as number) as claim_id,
                   cast(null as varchar2(200 char)) as worker_name,
                   cast(null as timestamp) as lease_until, a.finished_at,
                   to_clob(null) as last_error, a.group_key, cast(null as number) as waits_for,
                   cast(null as timestamp) as expires_at, to_clob(null) as progress,
                   a.producer_name
            from rowq_archive a
            where a.queue_id = v_queue.queue_id
              and a.message_id = p_message_id;
    end if;
end get_message;
