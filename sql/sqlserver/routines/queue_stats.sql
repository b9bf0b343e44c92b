set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.QueueStats
    @queue_name nvarchar(max) = null,
    @max_count int = 100000,
    @after_queue_name nvarchar(max) = null,
    @max_queues int = null
as
begin
-- routine   QueueStats
-- version   1
-- purpose   Return counts, age and settings of one queue or all.
-- promise   none
-- locks     rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   messages locked by another session are not counted
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int, @queue_id int;

    begin try
        exec rowq.InternalCheckRange N'max_count', @max_count, 1, 100000000, @is_required = 1;
        exec rowq.InternalCheckRange N'max_queues', @max_queues, 1, 10000;
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        if @queue_name is not null
            exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        -- Count from the first row, not from the floor: late rows count.
        select q.queue_name, cast(iif(q.paused_at is null, 0, 1) as bit) as is_paused,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) 1 as one
                       from rowq.ready t with (rowlock, readpast, readcommittedlock, forceseek)
                       where t.queue_id = q.queue_id
                   ) h
               ) as ready,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) 1 as one
                       from rowq.delayed t with (rowlock, readpast, readcommittedlock, forceseek)
                       where t.queue_id = q.queue_id
                   ) h
               ) as delayed,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) 1 as one
                       from rowq.leased t with (rowlock, readpast, readcommittedlock, forceseek)
                       where t.queue_id = q.queue_id
                   ) h
               ) as leased,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) 1 as one
                       from rowq.dead t with (rowlock, readpast, readcommittedlock, forceseek)
                       where t.queue_id = q.queue_id
                   ) h
               ) as dead,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) w.one
                       from (
                           select 1 as one
                           from rowq.group_waiting t
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where t.queue_id = q.queue_id
                           union all
                           select 1 as one
                           from rowq.blocked t
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where t.queue_id = q.queue_id
                       ) w
                   ) h
               ) as blocked,
               datediff_big(microsecond, o.enqueued_at, sysutcdatetime()) / 1e6
                   as oldest_ready_seconds,
               q.lease_seconds, cast(q.max_attempts as int) as max_attempts, q.backoff_base_seconds,
               q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, cast(q.group_limit as int) as group_limit, q.group_after_dead,
               q.group_pause_seconds, q.max_leased, q.rate_limit, q.rate_seconds,
               q.result_seconds, q.history_days
        from (
            select @queue_id as queue_id
            where @queue_id is not null
            union all
            select p.queue_id
            from (
                select top (isnull(@max_queues, 2147483647)) a.queue_id
                from rowq.queue a with (forceseek (queue_name_ix (queue_name)))
                where @queue_id is null
                  and a.queue_name >= isnull(cast(@after_queue_name as nvarchar(200)), N'')
                  and (
                      @after_queue_name is null
                      or a.queue_name > @after_queue_name
                      -- Names that differ in trailing blanks compare as equal.
                      or a.queue_name = @after_queue_name
                     and a.queue_key > convert(varbinary(402), @after_queue_name + N'.')
                  )
                order by a.queue_name, a.queue_key
            ) p
        ) g
        inner join rowq.queue q with (forceseek) on q.queue_id = g.queue_id
        -- top keeps this an apply per queue: a join could not seek.
        outer apply (
            select top (1) m.enqueued_at
            from rowq.lane l with (readuncommitted, forceseek)
            cross apply (
                select top (1) r.message_id
                from rowq.ready r
                    with (
                        rowlock, readpast, readcommittedlock, forceseek (ready_pk (queue_id, lane))
                    )
                where r.queue_id = l.queue_id
                  and r.lane = l.lane
                  and r.seq >= l.floor
                order by r.seq, r.message_id
            ) h
            inner join rowq.message m
                with (
                    rowlock, readpast, readcommittedlock,
                    forceseek (message_pk (queue_id, message_id))
                )
                on m.queue_id = l.queue_id
               and m.message_id = h.message_id
            where l.queue_id = q.queue_id
              and l.lane >= 0
              and l.is_open = 1
            order by m.enqueued_at
        ) o
        order by q.queue_name, q.queue_key
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
