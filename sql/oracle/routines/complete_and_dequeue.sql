procedure complete_and_dequeue(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_message_ids   in clob default null,
    p_results       in clob default null,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_rows          out sys_refcursor
)
is
-- routine   complete_and_dequeue
-- version   1
-- purpose   Complete messages of a claim and lease the next ones, in one call and one commit.
-- promise   P02 P03 P04 P05 P06 P07 P08 P13 P18 P21 P22 P23 P24 P26 P28 P29 P32 P37 P49
-- locks     as complete, then as dequeue_fast
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ713
-- differs   nothing
    e_stale_claim exception;
    pragma exception_init(e_stale_claim, -20721);
    v_queue_id      rowq_queue.queue_id%type;
    v_claim_id      rowq_claim.claim_id%type;
    v_lease_until   rowq_claim.lease_until%type;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    begin
        internal_complete_claim(p_queue_name, p_claim_id, p_message_ids, p_results, v_lines);
    exception
        when e_stale_claim then
            -- Nothing was written.
            v_lines := rowq_lines(rowq_line(1, null, null, null, 'stale', null));
    end;
    internal_dequeue(
        p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, v_queue_id, v_claim_id,
        v_lease_until
    );

    -- There are at most 10000 stale messages.
    open p_rows for
        select /*+ leading(n m) use_nl(m) index(m rowq_message_pk) */
               n.outcome, n.claim_id, n.message_id, n.attempt, m.message_type, m.headers, m.body,
               m.body_binary, m.enqueued_at,
               case when n.outcome = 'leased' then v_lease_until end as lease_until, m.last_error
        from (
            select s.outcome, p_claim_id as claim_id, s.message_id, s.attempt, s.place
            from table(v_lines) s
            where s.outcome = 'stale'
            union all
            select 'leased' as outcome, l.claim_id, l.message_id, l.attempt,
                   10000 + l.place as place
            from rowq_leased l
            where l.queue_id = v_queue_id
              and l.claim_id = v_claim_id
        ) n
        left join rowq_message m
          on m.queue_id = v_queue_id
         and m.message_id = n.message_id
         and n.outcome = 'leased'
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end complete_and_dequeue;
