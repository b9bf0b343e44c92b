set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFinish
    @part_id int,
    @archive_days int,
    @messages rowq.message_list readonly,
    @state nvarchar(20)
as
begin
-- routine   InternalFinish
-- purpose   Remove finished messages, or note them for the archive.
-- promise   P04 P12
-- locks     message rows; dedup rows
    set nocount on;
    declare @keys table (message_id bigint not null primary key, dedup_key nvarchar(400) null);

    if @archive_days > 0
    begin
        insert into rowq.finished with (rowlock)
            (part_id, finished_at, message_id, lane, attempt, state)
        select @part_id, sysutcdatetime(), j.message_id, j.lane, j.attempt, @state
        from @messages j
        option (maxdop 1);
        exec rowq.InternalReleaseDedupKeys @part_id, @messages;
    end;
    else
    begin
        delete m
        output deleted.message_id, deleted.dedup_key
        into @keys (message_id, dedup_key)
        from @messages j
        inner join rowq.message m with (rowlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        option (loop join, force order, maxdop 1);

        -- Most messages have no key: then this join is not worth its price.
        if exists (select 1 from @keys j where j.dedup_key is not null)
            delete k
            from @keys j
            inner join rowq.dedup k with (rowlock, forceseek)
                on k.part_id = @part_id
               and k.dedup_key = convert(varbinary(802), j.dedup_key + N'.')
               and k.message_id = j.message_id
            where j.dedup_key is not null
            option (loop join, force order, maxdop 1);
    end;
end
go
