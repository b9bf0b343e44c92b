set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalUnknownOf
    @part_id int,
    @message_ids nvarchar(max),
    @unknown_ids nvarchar(max) output
as
begin
-- routine   InternalUnknownOf
-- purpose   Return which of these messages have no body, or are finished and not yet archived; null where there is none.
-- promise   P15
-- locks     message rows, shared while they are read, tried only
-- differs   elsewhere a snapshot shows a message that an open transaction has finished
    set nocount on;
    declare @size int = 10000;
    declare @last_id bigint;
    declare @ids table (message_id bigint not null primary key);
    declare @unseen table (message_id bigint not null primary key);
    declare @unknown table (message_id bigint not null primary key);
    set @unknown_ids = null;

    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    insert into @unknown (message_id)
    select distinct f.message_id
    from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
    inner join @ids j on j.message_id = f.message_id
    where f.part_id = @part_id
    option (hash join, force order, maxdop 1, keepfixed plan);
    -- A dirty read sees every message but those that are gone, and those that an open transaction
    -- has deleted. Only these are asked for again below.
    insert into @unseen (message_id)
    select j.message_id
    from @ids j
    where not exists (
            select 1
            from rowq.message m with (readuncommitted, forceseek (message_pk (part_id, message_id)))
            where m.part_id = @part_id
              and m.message_id = j.message_id
        )
      and not exists (select 1 from @unknown u where u.message_id = j.message_id)
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- A row that another session has locked is error 1222 (nowait): it must not look like one that
    -- is not there. Without xact_abort that error ends no transaction. The option is off only here,
    -- where no table is written, and where nothing waits, so that no client's timeout comes.
    set xact_abort off;
    while 1 = 1
    begin
        set @last_id = null;
        select @last_id = max(h.message_id)
        from (select top (@size) n.message_id from @unseen n order by n.message_id) h;
        if @last_id is null
            break;
        begin try
            insert into @unknown (message_id)
            select n.message_id
            from @unseen n
            where n.message_id <= @last_id
              and not exists (
                  select 1
                  from rowq.message m
                      with (
                          rowlock, readcommittedlock, nowait,
                          forceseek (message_pk (part_id, message_id))
                      )
                  where m.part_id = @part_id
                    and m.message_id = n.message_id
              )
            option (loop join, force order, maxdop 1, keepfixed plan);
        end try
        begin catch
            if error_number() <> 1222
                throw;
            -- Ask one by one, to learn which of them it is.
            if @size > 1
            begin
                set @size = 1;
                continue;
            end;
        end catch;
        delete n from @unseen n where n.message_id <= @last_id;
    end;
    select @unknown_ids = N'[' + string_agg(cast(u.message_id as nvarchar(max)), N',') + N']'
    from @unknown u;
end
go
