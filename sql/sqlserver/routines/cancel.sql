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
--           delayed, dead, group_waiting and ready rows; locked ones are passed over; if one of the
--           messages waits in a group, without an archive, message rows, waiting for who has just
--           named one as a predecessor; a slot of each group, tried; then as complete
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_id int;
    declare @archive_days int;
    declare @noted_ids nvarchar(max);
    declare @remaining_ids nvarchar(max);
    declare @cancelled_ids nvarchar(max);
    declare @unknown_ids nvarchar(max);
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @outcomes table (
        message_id bigint not null primary key,
        outcome    nvarchar(20) not null
    );

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            if @message_ids is null
                exec rowq.InternalRefuse N'message_ids is missing';
            exec rowq.InternalCheckIds @message_ids;
            insert into @asked (place, message_id)
            select cast(j.[key] as int), cast(j.value as bigint)
            from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @archive_days = @archive_days output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @noted_ids = null;
            set @cancelled_ids = null;
            set @remaining_ids = @message_ids;
            if @include_leased = 1
            begin
                -- Look into the claims first: what is noted there is not looked for among the ready
                -- messages.
                exec rowq.InternalRecordCancels @queue_id, @message_ids, @noted_ids output;
                insert into @outcomes (message_id, outcome)
                select cast(j.value as bigint), N'requested' from openjson(@noted_ids) j;
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

            -- A message without a body is unknown, and so is one that is finished and not yet
            -- archived. Every other one that is left is in a worker's hands.
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
            -- The transaction of a caller is the caller's to end, and the engine has made
            -- it uncommittable if the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
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
    order by a.place;
end
go
