set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Reset
    @queue_name nvarchar(max),
    @message_ids nvarchar(max) = null,
    @max_messages int = 1000,
    @message_type nvarchar(max) = null,
    @died_before datetime2(6) = null
as
begin
-- routine   Reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts.
-- promise   P10 P12 P32
-- locks     the queue, shared; dead rows, skipping locked ones; message rows, shared; dedup
--           and result rows; new ready rows; groups as enqueue
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0),
        @tries_left int = 5, @begun int, @queue_id int, @group_limit int, @now bigint;
    declare @asked table (
        message_id bigint not null,
        position   int not null,
        primary key (message_id, position)
    );
    -- owner is the unfinished message that has the dedup key: this one, or one with the same key.
    declare @keys table (
        message_id bigint not null primary key,
        key_bytes  varbinary(802) not null,
        owner      bigint null
    );
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
            if @message_ids is not null
                insert into @asked (position, message_id)
                select cast(j.[key] as int), cast(j.value as bigint)
                from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @group_limit = @group_limit output;

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
                select distinct a.message_id from @asked a;

            -- A message that still holds its slot does not join its group. Its row is locked shared
            -- until the transaction ends (repeatableread), so that no session treats it as not dead
            -- before that.
            insert into @dead (message_id, lane, place, attempt, group_key)
            select d.message_id, d.lane / 2 * 2 + 1, 0, 0,
                   iif(d.holds_slot = 1, null, convert(varbinary(802), m.group_key + N'.'))
            from @wanted j
            inner join rowq.dead d
                with (
                    rowlock, xlock, readpast, readcommittedlock,
                    forceseek (dead_pk (queue_id, message_id))
                )
                on d.queue_id = @queue_id
               and d.message_id = j.message_id
            inner join rowq.message m
                with (rowlock, repeatableread, forceseek (message_pk (queue_id, message_id)))
                on m.queue_id = @queue_id
               and m.message_id = j.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            if @message_ids is null
                insert into @asked (position, message_id)
                select row_number() over (order by d.message_id), d.message_id
                from @dead d;

            -- A dead message whose dedup key another message owns stays dead. Insert all keys in
            -- key order, so that two batches with the same keys cannot deadlock. If an owner has
            -- just ended, its key is free: retry.
            insert into @keys (message_id, key_bytes)
            select m.message_id, convert(varbinary(802), m.dedup_key + N'.')
            from @dead j
            inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
                on m.queue_id = @queue_id
               and m.message_id = j.message_id
            where m.dedup_key is not null
            option (loop join, force order, maxdop 1, keepfixed plan);
            while exists (select 1 from @keys k where k.owner is null)
            begin
                insert into rowq.dedup with (rowlock) (queue_id, dedup_key, message_id)
                select @queue_id, h.key_bytes, h.message_id
                from (
                    select k.key_bytes, k.message_id, row_number() over (
                               partition by k.key_bytes
                               order by k.message_id
                           ) as position
                    from @keys k
                    where k.owner is null
                ) h
                where h.position = 1
                  and not exists (
                      select 1
                      from rowq.dedup d
                          with (
                              rowlock, readcommittedlock, forceseek (dedup_pk (queue_id, dedup_key))
                          )
                      where d.queue_id = @queue_id
                        and d.dedup_key = h.key_bytes
                  )
                order by h.key_bytes
                option (loop join, maxdop 1, keepfixed plan);
                update k
                set owner = d.message_id
                from @keys k
                inner join rowq.dedup d
                    with (rowlock, readcommittedlock, forceseek (dedup_pk (queue_id, dedup_key)))
                    on d.queue_id = @queue_id
                   and d.dedup_key = k.key_bytes
                where k.owner is null
                option (loop join, force order, maxdop 1, keepfixed plan);
            end;
            delete d
            from @dead d
            inner join @keys k on k.message_id = d.message_id
            where k.owner <> k.message_id;

            delete d
            from @dead j
            inner join rowq.dead d with (rowlock, forceseek)
                on d.queue_id = @queue_id
               and d.message_id = j.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete r
            from @dead j
            inner join rowq.result r with (index (result_pk), rowlock, forceseek)
                on r.queue_id = @queue_id
               and r.message_id = j.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            if exists (select 1 from @dead d where d.group_key is not null)
            begin
                set @now = datediff_big(microsecond, '19700101', sysutcdatetime());
                update @dead set place = @now;
                exec rowq.InternalJoinGroups @queue_id, @group_limit, @dead;
                exec rowq.InternalRecordExpiry @queue_id, @dead, @is_ready = 1;
            end;
            else
                exec rowq.InternalPushReady @queue_id, @dead;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction; after writes it is already uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- Retry a deadlock (1205) in our own transaction.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
            delete from @asked;
            delete from @keys;
            delete from @wanted;
            delete from @dead;
        end catch;
    end;

    select a.message_id,
           case
               when exists (select 1 from @dead d where d.message_id = a.message_id) then N'reset'
               when exists (select 1 from @keys k where k.message_id = a.message_id)
                   then N'duplicate'
               else N'not_found'
           end as outcome
    from @asked a
    order by a.position;
end
go
