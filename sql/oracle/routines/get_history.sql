procedure get_history(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
-- routine   get_history
-- version   1
-- purpose   Return the attempts of a message, oldest first, including the current lease.
-- promise   P37
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue       t_queue;
    v_is_known    pls_integer;
    v_group_key   rowq_message.group_key%type;
    v_due_at      timestamp(6);
    v_state       varchar2(20 char);
    v_lane        number;
    v_attempt     number;
    v_claim_id    number;
    v_worker_name rowq_claim.worker_name%type;
    v_leased_at   timestamp(6);
    v_lease_until timestamp(6);
    v_finished_at timestamp(6);
    v_waits_for   number;
begin
    if p_message_id is null then
        internal_refuse('message_id is required');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- Read the current lease first. An attempt that ends after this read is in the history and not
    -- returned twice.
    select count(*), max(m.due_at), max(m.group_key) into v_is_known, v_due_at, v_group_key
    from rowq_message m
    where m.queue_id = v_queue.queue_id
      and m.message_id = p_message_id;
    if v_is_known = 1 then
        internal_locate_messages(
            v_queue.queue_id, p_message_id, v_group_key, v_due_at, v_state, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_finished_at, v_waits_for, v_leased_at
        );
    end if;

    open p_rows for
        select n.attempt, n.worker_name, n.leased_at, n.ended_at, n.outcome, n.error
        from (
            select /*+ index_rs_asc(h rowq_history_message_ix) */
                   h.attempt, h.worker_name, h.leased_at, h.ended_at, h.outcome, h.error,
                   h.claim_id
            from rowq_history h
            where h.queue_id = v_queue.queue_id
              and h.message_id = p_message_id
            union all
            select v_attempt as attempt, v_worker_name as worker_name, v_leased_at as leased_at,
                   cast(null as timestamp) as ended_at,
                   cast(null as varchar2(20 char)) as outcome, to_clob(null) as error,
                   v_claim_id as claim_id
            from dual
            where v_claim_id is not null
              and not exists (
                  select /*+ index_rs_asc(k rowq_history_message_ix) */ null
                  from rowq_history k
                  where k.queue_id = v_queue.queue_id
                    and k.message_id = p_message_id
                    and k.claim_id = v_claim_id
              )
        ) n
        order by case when n.ended_at is null then 1 else 0 end, n.ended_at, n.claim_id;
end get_history;
