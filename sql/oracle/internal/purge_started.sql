procedure internal_purge_started(p_queue in t_queue, p_limit in number)
is
-- routine   internal_purge_started
-- purpose   Delete up to p_limit notes of deliveries that began too long ago to count.
-- promise   P13 P29
-- locks     started rows, passing over locked ones
    type t_start is record (
        started_at rowq_started.started_at%type,
        claim_id   rowq_started.claim_id%type
    );
    type t_starts is table of t_start index by pls_integer;
    -- Those of a queue that has no rate_limit any more are all too old.
    v_seconds constant number :=
        case when p_queue.rate_limit > 0 then p_queue.rate_seconds else 0 end;
    v_before  constant timestamp(6) :=
        sys_extract_utc(systimestamp) - numtodsinterval(v_seconds, 'second');
    v_since   constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.part_id, -5 /* started */));
    v_old     t_starts;
    cursor old_rows is
        select /*+ index_rs_asc(s rowq_started_pk) no_batch_table_access_by_rowid(s) */
               s.started_at, s.claim_id
        from rowq_started s
        where s.part_id = p_queue.part_id
          and s.started_at >= v_since
          and s.started_at < v_before
        order by s.part_id, s.started_at, s.claim_id
        for update skip locked;
begin
    open old_rows;
    fetch old_rows bulk collect into v_old limit p_limit;
    close old_rows;
    forall i in 1 .. v_old.count
        delete from rowq_started s
        where s.part_id = p_queue.part_id
          and s.started_at = v_old(i).started_at
          and s.claim_id = v_old(i).claim_id;
end internal_purge_started;
