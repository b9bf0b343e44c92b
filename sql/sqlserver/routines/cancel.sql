set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Cancel
    @queue_name nvarchar(max),
    @message_ids nvarchar(max)
as
begin
-- routine   Cancel
-- version   1
-- purpose   Withdraw messages that no worker holds, dead ones too.
-- promise   P15
-- locks     the part, shared; delayed, ready, dead rows, passing over locked ones; message rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun nvarchar(100);
    declare @part_id int;
    declare @archive_days int;
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @ids table (message_id bigint not null primary key);
    declare @unknown table (message_id bigint not null primary key);
    declare @ready table (
        lane       smallint not null,
        seq        bigint not null,
        message_id bigint not null,
        primary key (lane, seq, message_id)
    );
    declare @taken rowq.message_list;

    -- A refusal must not doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- If the caller's transaction begins here, then at the caller's isolation level.
            if @owns_transaction = 0
                select @begun = m.value from rowq.meta m where m.name = N'schema_version';
            set transaction isolation level read committed;

            delete from @asked;
            delete from @ids;
            delete from @unknown;
            delete from @ready;
            delete from @taken;
            if @message_ids is null
                exec rowq.InternalRefuse N'message_ids is missing';
            exec rowq.InternalCheckIds @message_ids;
            insert into @asked (place, message_id)
            select cast(j.[key] as int), cast(j.value as bigint)
            from openjson(@message_ids) j;
            insert into @ids (message_id)
            select distinct a.message_id from @asked a;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue
                @queue_name, @part_id output, @archive_days = @archive_days output;
            exec rowq.InternalLockPartShared @part_id, @queue_name;

            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;
            delete d
            output deleted.message_id, deleted.lane, 0, deleted.attempt
            into @taken (message_id, lane, place, attempt)
            from @ids j
            inner join rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
                on d.part_id = @part_id
               and d.message_id = j.message_id
            option (loop join, force order, maxdop 1);

            -- message.due_at is the place in delayed.
            delete d
            output deleted.message_id, deleted.lane, 0, deleted.attempt
            into @taken (message_id, lane, place, attempt)
            from @ids j
            inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                on m.part_id = @part_id
               and m.message_id = j.message_id
            inner join rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
                on d.part_id = @part_id
               and d.due_at = m.due_at
               and d.message_id = j.message_id
            option (loop join, force order, maxdop 1);

            -- A message that was never given back is in a tail lane at the moment it came; one that
            -- was, and is not in a worker's hands, may wait anywhere among the ready ones.
            insert into @ready (lane, seq, message_id)
            select r.lane, r.seq, r.message_id
            from @ids j
            inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                on m.part_id = @part_id
               and m.message_id = j.message_id
            inner join rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
                on r.part_id = @part_id
               and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
               and r.seq = datediff_big(microsecond, '19700101', m.enqueued_at)
               and r.message_id = j.message_id
            option (loop join, force order, maxdop 1);
            delete j
            from @ids j
            where exists (select 1 from @taken t where t.message_id = j.message_id)
               or exists (select 1 from @ready r where r.message_id = j.message_id)
               or exists (
                    select 1
                    from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
                    where l.part_id = @part_id
                      and l.message_id = j.message_id
                )
               or not exists (
                    select 1
                    from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                    where m.part_id = @part_id
                      and m.message_id = j.message_id
                );
            if exists (select 1 from @ids)
                insert into @ready (lane, seq, message_id)
                select r.lane, r.seq, r.message_id
                from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
                inner join @ids j on j.message_id = r.message_id
                where r.part_id = @part_id
                option (hash join, force order, maxdop 1);
            delete r
            output deleted.message_id, deleted.lane, 0, deleted.attempt
            into @taken (message_id, lane, place, attempt)
            from @ready j
            inner join rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
                on r.part_id = @part_id
               and r.lane = j.lane
               and r.seq = j.seq
               and r.message_id = j.message_id
            option (loop join, force order, maxdop 1);

            -- Dirty reads, so that a message in another session's hands is not unknown.
            insert into @unknown (message_id)
            select distinct a.message_id
            from @asked a
            where not exists (
                    select 1
                    from rowq.message m with (readuncommitted, forceseek)
                    where m.part_id = @part_id
                      and m.message_id = a.message_id
                )
               or exists (
                    select 1
                    from rowq.finished f with (readuncommitted, forceseek)
                    where f.part_id = @part_id
                      and f.message_id = a.message_id
                );
            exec rowq.InternalFinish @part_id, @archive_days, @taken, N'cancelled';

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;

            -- The victim of a deadlock, with nothing else to lose, begins again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select a.message_id,
           case
               when exists (select 1 from @taken j where j.message_id = a.message_id)
                   then N'cancelled'
               when exists (select 1 from @unknown u where u.message_id = a.message_id)
                   then N'not_found'
               else N'leased'
           end as outcome
    from @asked a
    order by a.place;
end
go
