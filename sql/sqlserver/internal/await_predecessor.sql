set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalAwaitPredecessor
    @part_id int,
    @predecessor_ids nvarchar(max),
    @on_dead nvarchar(20),
    @state nvarchar(20) output,
    @predecessor_id bigint output,
    @rest_ids nvarchar(max) output
as
begin
-- routine   InternalAwaitPredecessor
-- purpose   Find the newest of these that has not ended, and hold it: waiting, free, failed, or unsure where others are at work.
-- promise   P25 P26 P27
-- locks     the predecessor's message row, shared, tried only
-- differs   elsewhere it also notes that the message waits
    set nocount on;
    declare @before bigint = 9223372036854775807;
    declare @floor bigint;
    declare @since datetime2(6);
    declare @dead_id bigint;
    declare @has_ended bit;
    declare @ids table (message_id bigint not null primary key);
    declare @ended table (message_id bigint not null primary key);
    set @state = null;
    set @rest_ids = null;

    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@predecessor_ids) j;
    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -3 /* finished */;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    -- A row that another session has locked is error 1222 (nowait): it must not look like one that
    -- is not there. Without xact_abort that error ends no transaction. The option is off only here,
    -- where nothing is written, and where nothing waits, so that no client's timeout comes.
    set xact_abort off;
    while @state is null
    begin
        begin try
            -- Hold the row to the end of the transaction (repeatableread): whoever ends the
            -- predecessor waits for this one, or leaves a note to look again.
            set @predecessor_id = null;
            set @dead_id = null;
            set @has_ended = 0;
            select top (1) @predecessor_id = m.message_id
            from @ids j
            inner join rowq.message m
                with (rowlock, repeatableread, nowait, forceseek (message_pk (part_id, message_id)))
                on m.part_id = @part_id
               and m.message_id = j.message_id
            where j.message_id < @before
            order by j.message_id desc
            option (loop join, force order, maxdop 1, keepfixed plan);
            if @predecessor_id is not null and @on_dead in (N'continue', N'fail')
                select @dead_id = d.message_id
                from rowq.dead d with (rowlock, readcommittedlock, nowait, forceseek)
                where d.part_id = @part_id
                  and d.message_id = @predecessor_id;

            -- The archive keeps the message row for a while. Where the end is not seen here, the
            -- archiver frees what waits when it deletes the row.
            if @predecessor_id is not null
                select top (1) @has_ended = 1
                from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
                where f.part_id = @part_id
                  and f.finished_at >= @since
                  and f.message_id = @predecessor_id
                option (maxdop 1, keepfixed plan);
            if @has_ended = 1
            begin
                -- Thousands may have ended since the archiver was here: leave all of them out at
                -- once.
                delete from @ended;
                insert into @ended (message_id)
                select distinct f.message_id
                from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
                inner join @ids j on j.message_id = f.message_id
                where f.part_id = @part_id
                  and f.finished_at >= @since
                option (hash join, force order, maxdop 1, keepfixed plan);
                delete j
                from @ids j
                inner join @ended e on e.message_id = j.message_id;
            end;

            set @state = case
                when @predecessor_id is null then N'free'
                when @has_ended = 1 then null
                when @dead_id is null then N'waiting'
                when @on_dead = N'fail' then N'failed'
            end;
            if @state is null
                set @before = @predecessor_id;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            set @state = N'unsure';
            set @predecessor_id = null;
        end catch;
    end;

    if @state in (N'waiting', N'unsure')
        select @rest_ids = N'[' + string_agg(cast(j.message_id as nvarchar(max)), N',')
                   within group (order by j.message_id desc) + N']'
        from @ids j
        where j.message_id < coalesce(@predecessor_id, @before);
end
go
