set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFirstKey
    @part_id int,
    @lane smallint,
    @first bigint output
as
begin
-- routine   InternalFirstKey
-- purpose   Return the first live key of a lane from its very start on; null where there is none.
-- promise   P13 P14
-- locks     rows, shared while they are read, passing over locked ones
    set nocount on;
    set @first = null;

    if @lane = -1 /* claim */
        select top (1) @first = c.claim_id
        from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
        where c.part_id = @part_id
        order by c.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -2 /* delayed */
        select top (1) @first = datediff_big(microsecond, '19700101', d.due_at)
        from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
        order by d.due_at, d.message_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -8 /* history */
        select top (1) @first = datediff_big(microsecond, '19700101', h.ended_at)
        from rowq.history h
            with (index (history_pk), rowlock, readpast, readcommittedlock, forceseek)
        where h.part_id = @part_id
        order by h.ended_at, h.message_id, h.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -7 /* result */
        select top (1) @first = datediff_big(microsecond, '19700101', r.finished_at)
        from rowq.result r
            with (index (result_finished_ix), rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
        order by r.finished_at, r.message_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -6 /* expiry */
        select top (1) @first = datediff_big(microsecond, '19700101', e.expires_at)
        from rowq.expiry e with (rowlock, readpast, readcommittedlock, forceseek)
        where e.part_id = @part_id
        order by e.expires_at, e.expiry_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -5 /* started */
        select top (1) @first = datediff_big(microsecond, '19700101', s.started_at)
        from rowq.started s with (rowlock, readpast, readcommittedlock, forceseek)
        where s.part_id = @part_id
        order by s.started_at, s.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -4 /* deferred */
        select top (1) @first = datediff_big(microsecond, '19700101', r.due_at)
        from rowq.recheck r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
        order by r.due_at, r.recheck_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -3 /* finished */
        select top (1) @first = datediff_big(microsecond, '19700101', f.finished_at)
        from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
        where f.part_id = @part_id
        order by f.finished_at, f.message_id
        option (maxdop 1, keepfixed plan);
    else
        select top (1) @first = r.seq
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
          and r.lane = @lane
        order by r.seq, r.message_id
        option (maxdop 1, keepfixed plan);
end
go
