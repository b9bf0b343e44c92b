set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Cancel
    @queue_name nvarchar(max),
    @message_ids nvarchar(max),
    @include_leased bit = 0
as
begin
-- routine   Cancel
-- version   1
-- purpose   Cancel messages that no worker holds, dead ones included.
-- promise   P15 P34
-- locks     the queue, shared; claim rows, if include_leased, and then those of leased; blocked,
--           delayed, dead, group_waiting and ready rows, skipping locked ones; if a message waits
--           in a group, and there is no archive: message rows, waiting for producers that have just
--           named them as predecessors; a slot of each group, skipped if locked; then as complete
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
        @tries_left int = 5, @begun int, @queue_id int, @archive_days int,
        @recorded_ids nvarchar(max), @remaining_ids nvarchar(max), @cancelled_ids nvarchar(max),
        @unknown_ids nvarchar(max);
    declare @asked table (
        message_id bigint not null,
        position   int not null,
        primary key (message_id, position)
    );
    declare @outcomes table (
        message_id bigint not null primary key,
        outcome    nvarchar(20) not null
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

            if @message_ids is null
                exec rowq.InternalRefuse N'message_ids is required';
            exec rowq.InternalCheckIds @message_ids;
            insert into @asked (position, message_id)
            select cast(j.[key] as int), cast(j.value as bigint)
            from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @archive_days = @archive_days output;

            -- Writes start here: if the client disconnects, xact_abort rolls back everything.
            set xact_abort on;
            set @recorded_ids = null;
            set @cancelled_ids = null;
            set @remaining_ids = @message_ids;
            if @include_leased = 1
            begin
                -- Check the claims first: leased messages are not searched for among the ready
                -- ones.
                exec rowq.InternalRecordCancels @queue_id, @message_ids, @recorded_ids output;
                insert into @outcomes (message_id, outcome)
                select cast(j.value as bigint), N'requested' from openjson(@recorded_ids) j;
                select @remaining_ids = N'[' + string_agg(cast(a.message_id as nvarchar(max)), N',')
                       + N']'
                from @asked a
                where not exists (select 1 from @outcomes o where o.message_id = a.message_id);
            end;
            if @remaining_ids is not null
                exec rowq.InternalCancelUnleased
                    @queue_id, @archive_days, @remaining_ids, @owns_transaction,
                    @cancelled_ids output;
            insert into @outcomes (message_id, outcome)
            select cast(j.value as bigint), N'cancelled' from openjson(@cancelled_ids) j;

            -- A message without a body is unknown, and so is a finished message that waits for the
            -- archiver. All others are leased.
            select @remaining_ids =
                       N'[' + string_agg(cast(a.message_id as nvarchar(max)), N',') + N']'
            from @asked a
            where not exists (select 1 from @outcomes o where o.message_id = a.message_id);
            if @remaining_ids is not null
            begin
                exec rowq.InternalUnknownOf @queue_id, @remaining_ids, @unknown_ids output;
                insert into @outcomes (message_id, outcome)
                select cast(j.value as bigint), N'not_found' from openjson(@unknown_ids) j;
            end;

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
            delete from @asked;
            delete from @outcomes;
        end catch;
    end;

    select a.message_id, coalesce(o.outcome, N'leased') as outcome
    from @asked a
    left join @outcomes o on o.message_id = a.message_id
    order by a.position;
end
go
