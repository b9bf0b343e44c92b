set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.CancelMany
    @queue_name nvarchar(max),
    @message_type nvarchar(max) = null,
    @group_key nvarchar(max) = null,
    @header_name nvarchar(max) = null,
    @header_value nvarchar(max) = null,
    @enqueued_before datetime2(6) = null,
    @after_message_id bigint = 0,
    @max_messages int = 1000
as
begin
-- routine   CancelMany
-- version   1
-- purpose   Cancel messages that match all given filters and that no worker holds.
-- promise   P15
-- locks     message rows, shared while they are read, skipping locked ones; as cancel
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is searched for among all ready messages of the
--           queue
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0),
        @tries_left int = 5, @begun int, @queue_id int, @archive_days int, @last_id bigint,
        @message_ids nvarchar(max), @cancelled_ids nvarchar(max), @cancelled int;
    declare @seen table (
        message_id bigint not null primary key,
        is_wanted  bit not null
    );

    -- With xact_abort on, an error would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- With implicit_transactions, begin the caller's transaction at its isolation level.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
            if iif(@header_name is null, 0, 1) <> iif(@header_value is null, 0, 1)
                exec rowq.InternalRefuse N'header_name and header_value must be set together';
            if datalength(@header_name) not between 2 and 400
                or @header_name collate Latin1_General_100_BIN2 like N'%[^ -~]%'
                or charindex(N'"', @header_name) > 0
                or charindex(N'\', @header_name) > 0
                or left(@header_name, 1) = N'-'
                exec rowq.InternalRefuse
                    N'header_name must be 1 to 200 printable ASCII characters, no ", \, leading -';
            if @message_type is null and @group_key is null and @header_name is null
                and @enqueued_before is null
                exec rowq.InternalRefuse
                    N'a filter is required: message_type, group_key, header_name, enqueued_before';

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @archive_days = @archive_days output;

            -- Writes start here: if the client disconnects, xact_abort rolls back everything.
            set xact_abort on;
            -- Compare lengths too: texts that differ in trailing blanks are equal. The types of
            -- openjson: 1 is a string, 2 a number, 3 true or false.
            insert into @seen (message_id, is_wanted)
            select top (@max_messages) m.message_id,
                   iif(
                       (
                           @message_type is null
                           or m.message_type = @message_type
                              and datalength(m.message_type) = datalength(@message_type)
                       )
                       and (
                           @group_key is null
                           or m.group_key = @group_key
                              and datalength(m.group_key) = datalength(@group_key)
                       )
                       and (@enqueued_before is null or m.enqueued_at < @enqueued_before)
                       and (
                           @header_name is null
                           or exists (
                               select 1
                               from openjson(m.headers) h
                               where h.[key] = @header_name
                                 and datalength(h.[key]) = datalength(@header_name)
                                 and h.value collate Latin1_General_100_BIN2 = @header_value
                                 and datalength(h.value) = datalength(@header_value)
                                 and (
                                     h.[type] in (1, 3)
                                     or h.[type] = 2 and h.value not like N'%[^-0-9]%'
                                 )
                           )
                       ),
                       1, 0
                   )
            from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
            where m.queue_id = @queue_id
              and m.message_id > coalesce(@after_message_id, 0)
            order by m.message_id
            option (loop join, maxdop 1, keepfixed plan);
            select @last_id = iif(count(*) = @max_messages, max(s.message_id), null)
            from @seen s;
            delete from @seen where is_wanted = 0;

            -- Skip finished messages that wait for the archiver: they would be searched for among
            -- all ready messages.
            if exists (select 1 from @seen)
                delete s
                from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
                inner join @seen s on s.message_id = f.message_id
                where f.queue_id = @queue_id
                option (hash join, force order, maxdop 1, keepfixed plan);
            set @cancelled_ids = null;
            if exists (select 1 from @seen)
            begin
                select @message_ids = N'[' + string_agg(cast(s.message_id as nvarchar(max)), N',')
                       + N']'
                from @seen s;
                exec rowq.InternalCancelUnleased
                    @queue_id, @archive_days, @message_ids, @owns_transaction,
                    @cancelled_ids output;
            end;
            select @cancelled = count(*) from openjson(@cancelled_ids);

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction; after writes it is already uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- Retry a deadlock (1205), or a lock timeout while taking a group slot, in our own
            -- transaction.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryTakeGroupSlot'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
            delete from @seen;
        end catch;
    end;

    select @cancelled as cancelled, @last_id as after_message_id;
end
go
