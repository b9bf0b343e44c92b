set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DiscardDead
    @queue_name nvarchar(max),
    @message_ids nvarchar(max) = null,
    @max_messages int = 1000,
    @message_type nvarchar(max) = null,
    @died_before datetime2(6) = null
as
begin
-- routine   DiscardDead
-- version   1
-- purpose   Delete dead messages; they do not go to the archive.
-- promise   P12 P22 P26
-- locks     the queue, shared; dead rows, skipping locked ones; then as complete
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0),
        @tries_left int = 5, @begun int, @queue_id int, @removed int;
    declare @wanted table (message_id bigint not null primary key);
    declare @dead rowq.message_list;

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

            exec rowq.InternalCheckIds @message_ids;
            exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
            if @message_ids is not null
                and (@message_type is not null or @died_before is not null)
                exec rowq.InternalRefuse
                    N'message_ids is mutually exclusive with message_type and died_before';

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @queue_id output;

            -- Writes start here: if the client disconnects, xact_abort rolls back everything.
            set xact_abort on;
            -- Find dead messages with short locks: lasting ones would also stay on rows that do not
            -- match. Compare lengths too: texts that differ in trailing blanks are equal.
            if @message_ids is null
                insert into @wanted (message_id)
                select top (@max_messages) d.message_id
                from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
                where d.queue_id = @queue_id
                  and (@died_before is null or d.died_at < @died_before)
                  and (
                      @message_type is null
                      or exists (
                          select 1
                          from rowq.message m
                              with (
                                  rowlock, readpast, readcommittedlock,
                                  forceseek (message_pk (queue_id, message_id))
                              )
                          where m.queue_id = @queue_id
                            and m.message_id = d.message_id
                            and m.message_type = @message_type
                            and datalength(m.message_type) = datalength(@message_type)
                      )
                  )
                order by d.message_id
                option (loop join, maxdop 1, keepfixed plan);
            else
                insert into @wanted (message_id)
                select distinct cast(j.value as bigint) from openjson(@message_ids) j;

            delete d
            output deleted.message_id, deleted.lane, 0, deleted.attempt,
                   iif(deleted.holds_slot = 1, 0, 1)
            into @dead (message_id, lane, place, attempt, is_without_slot)
            from @wanted j
            inner join rowq.dead d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                on d.queue_id = @queue_id
               and d.message_id = j.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            set @removed = @@rowcount;
            if @removed > 0
                exec rowq.InternalFinish @queue_id, 0, @dead, N'cancelled', @owns_transaction;

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
            delete from @wanted;
            delete from @dead;
        end catch;
    end;

    select cast(@removed as bigint) as removed;
end
go
