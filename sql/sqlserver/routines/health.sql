set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Health
as
begin
-- routine   Health
-- version   1
-- purpose   Check for problems: blocked cleanup, overdue work, expired leases, dead messages, sequences.
-- promise   none
-- locks     rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   the horizon and sequence checks are this engine's
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int, @seconds float, @detail nvarchar(500);
    declare @message_behind bigint, @claim_behind bigint, @queue_behind bigint;
    declare @now datetime2(6) = sysutcdatetime();

    begin try
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalHealthServer @seconds output, @detail output;
        exec rowq.InternalHealthSequences
            @message_behind output, @claim_behind output, @queue_behind output;

        select c.check_name, c.queue_name,
               case
                   when c.value >= c.critical then N'critical'
                   when c.value >= c.warning then N'warning'
                   else N'ok'
               end as status,
               c.value, c.detail
        from (
            select N'clean_up_horizon' as check_name, cast(null as nvarchar(200)) as queue_name,
                   @seconds as value, 300 as warning, 3600 as critical, @detail as detail
            union all
            select N'sequence_behind', null, iif(s.behind > 0, cast(s.behind as float), 0), 1, 1,
                   concat(
                       s.name,
                       case
                           when s.behind is null
                               then N': unknown, the caller cannot see the sequence; grant VIEW'
                                   + N' DEFINITION'
                           when s.behind > 0
                               then N' numbers would repeat numbers in use; call after_failover'
                                   + N' (rowq after-failover)'
                           else N' numbers are ahead of those stored'
                       end
                   )
            from (
                values
                    (N'claim', @claim_behind), (N'message', @message_behind),
                    (N'queue', @queue_behind)
            ) s (name, behind)
            union all
            select v.check_name, q.queue_name, cast(v.value as float), v.warning, v.critical,
                   v.detail
            from rowq.queue q
            -- top keeps this an apply per queue: a join could not seek.
            outer apply (
                select top (1) m.enqueued_at
                from rowq.lane l with (readuncommitted, forceseek)
                cross apply (
                    select top (1) r.message_id
                    from rowq.ready r
                        with (
                            rowlock, readpast, readcommittedlock,
                            forceseek (ready_pk (queue_id, lane))
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
            outer apply (
                select count_big(*) as messages
                from (
                    select top (1000) 1 as one
                    from rowq.dead t with (rowlock, readpast, readcommittedlock, forceseek)
                    where t.queue_id = q.queue_id
                ) h
            ) b
            outer apply (
                select top (1) d.due_at
                from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
                where d.queue_id = q.queue_id
                  and d.due_at <= @now
                order by d.due_at, d.message_id
            ) d
            outer apply (
                select top (1) e.lease_until
                from rowq.claim e with (rowlock, readpast, readcommittedlock, forceseek)
                where e.queue_id = q.queue_id
                  and e.lease_until <= @now
                order by e.lease_until
            ) e
            outer apply (
                select top (1) r.due_at
                from rowq.deferred r with (rowlock, readpast, readcommittedlock, forceseek)
                where r.queue_id = q.queue_id
                  and r.due_at <= @now
                order by r.due_at, r.deferred_id
            ) g
            outer apply (
                select count_big(*) as messages
                from (
                    select top (1000) 1 as one
                    from (
                        select top (10000) t.message_id
                        from rowq.dead t with (rowlock, readpast, readcommittedlock, forceseek)
                        where t.queue_id = q.queue_id
                        order by t.message_id desc
                    ) n
                    inner join rowq.successor s with (rowlock, readpast, readcommittedlock)
                        on s.queue_id = q.queue_id
                       and s.predecessor_id = n.message_id
                    inner join rowq.blocked x with (rowlock, readpast, readcommittedlock)
                        on x.queue_id = q.queue_id
                       and x.message_id = s.message_id
                ) h
            ) w
            outer apply (
                select top (1) s.next_run_at
                from rowq.schedule s with (rowlock, readpast, readcommittedlock, forceseek)
                where s.queue_id = q.queue_id
                  and s.next_run_at <= @now
                order by s.next_run_at
            ) s
            outer apply (
                select count_big(*) as schedules
                from (
                    select top (10000) 1 as one
                    from rowq.schedule f with (rowlock, readpast, readcommittedlock, forceseek)
                    where f.queue_id = q.queue_id
                      and f.last_error is not null
                ) h
            ) f
            outer apply (
                select top (1) x.expires_at
                from rowq.expiry x with (rowlock, readpast, readcommittedlock, forceseek)
                where x.queue_id = q.queue_id
                  and x.expires_at <= @now
                order by x.expires_at, x.expiry_id
            ) y
            outer apply (
                select top (1) x.finished_at
                from rowq.result x
                    with (
                        index (result_finished_ix), rowlock, readpast, readcommittedlock, forceseek
                    )
                where x.queue_id = q.queue_id
                order by x.finished_at
            ) k
            -- Start at the floor, converted to a time as in InternalFromMicroseconds.
            outer apply (
                select top (1) a.ended_at
                from rowq.lane l with (readuncommitted, forceseek (lane_pk (queue_id, lane)))
                cross apply (
                    select top (1) h.ended_at
                    from rowq.history h
                        with (index (history_pk), rowlock, readpast, readcommittedlock, forceseek)
                    where h.queue_id = l.queue_id
                      and h.ended_at >= dateadd(
                          microsecond, cast(l.floor % 1000000 as int),
                          dateadd(
                              second, cast(l.floor / 1000000 % 86400 as int),
                              dateadd(
                                  day, cast(l.floor / 1000000 / 86400 as int),
                                  cast('19700101' as datetime2(6))
                              )
                          )
                      )
                    order by h.ended_at, h.message_id, h.claim_id
                ) a
                where l.queue_id = q.queue_id
                  and l.lane = -8 /* history */
            ) i
            cross apply (
                values
                    (
                        N'oldest_ready',
                        coalesce(datediff_big(microsecond, o.enqueued_at, @now) / 1e6, 0),
                        300, 3600,
                        concat(
                            N'seconds the oldest ready message has waited',
                            iif(q.paused_at is null, N'', N'; the queue is paused')
                        )
                    ),
                    (
                        N'dead_messages', b.messages, 1, 1000,
                        N'dead messages, counted up to 1000; see list_dead and reset'
                    ),
                    (
                        N'overdue_delayed',
                        coalesce(datediff_big(microsecond, d.due_at, @now) / 1e6, 0), 30, 300,
                        N'seconds the oldest due message has waited to be promoted;'
                            + N' call maintain every second'
                    ),
                    (
                        N'expired_leases',
                        coalesce(datediff_big(microsecond, e.lease_until, @now) / 1e6, 0), 30, 300,
                        N'seconds the oldest expired lease has waited to be reaped;'
                            + N' call maintain every second'
                    ),
                    (
                        N'overdue_groups',
                        coalesce(datediff_big(microsecond, g.due_at, @now) / 1e6, 0), 30, 300,
                        N'seconds deferred work has waited for a transaction to end or for'
                            + N' maintain'
                    ),
                    (
                        N'waits_for_dead', w.messages, 1, 1000,
                        N'messages blocked by the newest 10000 dead messages, counted up to'
                            + N' 1000; reset or cancel the dead ones'
                    ),
                    (
                        N'overdue_schedules',
                        coalesce(datediff_big(microsecond, s.next_run_at, @now) / 1e6, 0), 30, 300,
                        N'seconds the oldest due schedule has waited; call maintain every second,'
                            + N' or end the transaction that has locked the schedule or opened its'
                            + N' group'
                    ),
                    (
                        N'failed_schedules', f.schedules, 1, 1000,
                        N'schedules whose last tick enqueued no message; see list_schedules'
                    ),
                    (
                        N'overdue_expiries',
                        coalesce(datediff_big(microsecond, y.expires_at, @now) / 1e6, 0), 30, 300,
                        N'seconds an expired message has waited for maintain or for the session'
                            + N' that holds it'
                    ),
                    (
                        N'overdue_results',
                        iif(
                            datediff_big(microsecond, k.finished_at, @now) / 1e6 > q.result_seconds,
                            datediff_big(microsecond, k.finished_at, @now) / 1e6 - q.result_seconds,
                            0
                        ),
                        300, 3600,
                        N'seconds the oldest result has been kept beyond result_seconds;'
                            + N' call maintain every second'
                    ),
                    (
                        N'overdue_history',
                        iif(
                            datediff_big(second, i.ended_at, @now) > q.history_days * 86400e0,
                            datediff_big(microsecond, i.ended_at, @now) / 1e6
                            - q.history_days * 86400e0,
                            0
                        ),
                        3600, 86400,
                        N'seconds the oldest attempt has been kept beyond history_days;'
                            + N' call maintain every second'
                    )
            ) v (check_name, value, warning, critical, detail)
        ) c
        order by c.check_name, c.queue_name, c.detail
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
