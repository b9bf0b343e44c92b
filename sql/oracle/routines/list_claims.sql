procedure list_claims(
    p_queue_name     in varchar2 default null,
    p_after_claim_id in number default 0,
    p_max_claims     in number default 100,
    p_rows           out sys_refcursor
)
is
-- routine   list_claims
-- version   1
-- purpose   List the claims of one queue or all, by id.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a claim committed late is listed once maintain has corrected its floor
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue t_queue;
begin
    internal_check_whole('max_claims', p_max_claims, 1, 10000, p_is_required => true);
    if p_queue_name is not null then
        v_queue := internal_require_queue(p_queue_name);
    end if;

    open p_rows for
        select h.queue_name, h.claim_id, h.worker_name,
               (
                   select /*+ index_rs_asc(l rowq_leased_pk) */ count(*)
                   from rowq_leased l
                   where l.queue_id = h.queue_id
                     and l.claim_id = h.claim_id
               ) as message_count,
               h.lease_until,
               extract(day from h.lease_until - v_now) * 86400
               + extract(hour from h.lease_until - v_now) * 3600
               + extract(minute from h.lease_until - v_now) * 60
               + extract(second from h.lease_until - v_now) as lease_left_seconds
        from (
            -- At most one page per queue is sorted.
            select /*+ leading(q f c) use_nl(f) use_nl(c) index(f rowq_lane_pk) */
                   q.queue_name, q.queue_id, c.claim_id, c.worker_name, c.lease_until
            from rowq_queue q
            join rowq_lane f
              on f.queue_id = q.queue_id
             and f.lane = -1 /* claim */
            cross apply (
                select /*+ index_rs_asc(k rowq_claim_pk) */
                       k.claim_id, k.worker_name, k.lease_until
                from rowq_claim k
                where k.queue_id = q.queue_id
                  and k.claim_id >= f.floor_seq
                  and k.claim_id > coalesce(p_after_claim_id, 0)
                order by k.queue_id, k.claim_id
                fetch first p_max_claims rows only
            ) c
            where v_queue.queue_id is null
               or q.queue_id = v_queue.queue_id
            order by c.claim_id
            fetch first p_max_claims rows only
        ) h
        order by h.claim_id;
end list_claims;
