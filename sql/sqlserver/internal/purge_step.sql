set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeStep
    @part_id int,
    @limit int,
    @stage smallint output,
    @from bigint output,
    @removed int output
as
begin
-- routine   InternalPurgeStep
-- purpose   Delete up to @limit messages of one lane (stage 0 to 19), of the delayed (20) or of the dead (21).
-- promise   P15
-- locks     ready, delayed or dead rows, passing over locked ones; message and dedup rows
-- differs   no such helper elsewhere: part of purge_queue
    set nocount on;
    declare @since datetime2(6);
    declare @taken rowq.message_list;

    -- Go on from the last row and not from the start, where the index still has the rows deleted so
    -- far.
    if @stage < 20
    begin
        with head as (
            select top (@limit) r.part_id, r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where r.part_id = @part_id
              and r.lane = @stage
              and r.seq >= @from
            order by r.seq, r.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
        into @taken (message_id, lane, place, attempt)
        option (maxdop 1, keepfixed plan);
    end;
    else if @stage = 20
    begin
        exec rowq.InternalFromMicroseconds @from, @since output;
        with head as (
            select top (@limit) d.part_id, d.due_at, d.message_id, d.lane, d.attempt
            from rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where d.part_id = @part_id
              and d.due_at >= @since
            order by d.due_at, d.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane,
               datediff_big(microsecond, '19700101', deleted.due_at), deleted.attempt
        into @taken (message_id, lane, place, attempt)
        option (maxdop 1, keepfixed plan);
    end;
    else
    begin
        with head as (
            select top (@limit) d.part_id, d.message_id, d.lane, d.attempt
            from rowq.dead d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where d.part_id = @part_id
              and d.message_id >= @from
            order by d.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.message_id, deleted.attempt
        into @taken (message_id, lane, place, attempt)
        option (maxdop 1, keepfixed plan);
    end;

    select @removed = count(*), @from = coalesce(max(j.place), 0) from @taken j;
    if @removed = 0
        set @stage += 1;
    else
        exec rowq.InternalFinish @part_id, 0, @taken, N'cancelled';
end
go
