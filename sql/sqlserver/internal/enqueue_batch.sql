set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEnqueueBatch
    @queue_name nvarchar(max),
    @messages nvarchar(max),
    @is_published bit = 0
as
begin
-- routine   InternalEnqueueBatch
-- purpose   Add the messages of a JSON array to a queue, or each to those that are bound to its topic, all of them or, on an error, none; returns the rows.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P35 P36
-- locks     new rows; the part, shared; with dedup and group keys, waits as enqueue does, in the
--           order of the keys; as InternalStoreBatch; as InternalBoundQueues where published, and
--           then queue by queue in the order of their names
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   no such helper elsewhere: as InternalNextMessageId, it is compiled only after the
--           routine has set rowcount to 0
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @max_body_length int = 33554432;
    declare @uncounted_length int = 0;
    declare @group_limit int;
    declare @now datetime2(6);
    declare @is_array bit = 0;
    declare @has_waiting bit;
    declare @first_id bigint;
    declare @given rowq.given_list;
    declare @parsed rowq.parsed_list;
    declare @new rowq.new_list;
    declare @queues nvarchar(max);
    declare @turn int;
    -- turn is the place of a queue in @queues; of a message that is published to it there is a row.
    declare @bound table (
        turn     int not null,
        position int not null,
        primary key (turn, position)
    );
    declare @stored table (
        turn       int not null,
        position   int not null,
        message_id bigint not null,
        is_new     bit not null,
        primary key (turn, position)
    );

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            -- Where no queue is given, each has a limit of its own, for which all bodies are
            -- counted.
            if @is_published = 0
            begin
                exec rowq.InternalRequireQueue
                    @queue_name, @part_id output, @max_body_length = @max_body_length output,
                    @group_limit = @group_limit output;
                set @uncounted_length = @max_body_length;
            end;
            -- openjson reports an array as type 4. It raises an error for text that is not JSON or
            -- is nested more than 128 deep, so isjson looks first. The text is an array if it is
            -- the one value inside another.
            if isjson(concat(N'[', @messages, N']')) = 1
                select @is_array = iif(count(*) = 1 and min(j.[type]) = 4, 1, 0)
                from openjson(concat(N'[', @messages, N']')) j;
            if @is_array = 1
                select @is_array = iif(count(*) > 10000, 0, 1)
                from openjson(@messages) j;
            if @is_array = 0
                exec rowq.InternalRefuse N'messages must be a JSON array of at most 10000 objects';

            -- @given takes the short values, and of the long ones only what the checks need: these
            -- stay in the JSON.
            insert into @given (position, name, kind, value, size, is_base64, moment)
            select cast(e.[key] as int) + 1, left(p.[key], 60), coalesce(p.[type], e.[type]),
                   iif(
                       p.[key] in (N'body', N'body_base64', N'headers'), null,
                       left(p.value collate Latin1_General_100_BIN2, 402)
                   ),
                   case
                       when p.[key] in (N'message_type', N'dedup_key', N'group_key')
                           or p.[key] = N'body'
                               and datalength(p.value) / 2 > @uncounted_length
                           or p.[key] = N'headers' and datalength(p.value) / 2 > 65536
                           then len((p.value + N'.') collate Latin1_General_100_CI_AS_SC) - 1
                       when p.[key] in (N'body', N'headers')
                           then datalength(p.value) / 2
                       -- Four letters of base64 are three bytes; each = at the end stands for a
                       -- byte that is not there.
                       when p.[key] = N'body_base64'
                           then datalength(p.value) / 8 * 3 - datalength(right(p.value, 2)) / 2
                               + len(replace(right(p.value, 2), N'=', N''))
                   end,
                   case
                       when p.[key] <> N'body_base64' then 0
                       when p.value collate Latin1_General_100_BIN2 like N'%[^A-Za-z0-9+/=]%' then 0
                       when p.value like N'%=[^=]%' or p.value like N'%===' then 0
                       else iif(len(p.value) % 4 = 0, 1, 0)
                   end,
                   m.moment
            from openjson(@messages) e
            outer apply openjson(iif(e.[type] = 5, e.value, N'{}')) p
            outer apply (
                -- A moment looks like 2030-12-31T23:59:59.123456+01:00. The zone may also be Z or
                -- +0100, or missing, which means UTC.
                -- The bounds leave room for the minutes.
                select iif(
                           t.minutes between -840 and 840
                               and t.moment between '19000102' and '99981231',
                           dateadd(minute, -t.minutes, t.moment), null
                       ) as moment
                from (
                    select left(p.value, 60) as value,
                           case
                               when right(p.value, 1) = N'Z' then 1
                               when substring(p.value, len(p.value) - 4, 1) in (N'-', N'+') then 5
                               when substring(p.value, len(p.value) - 5, 1) in (N'-', N'+') then 6
                               else 0
                           end as length
                    where p.[key] = N'run_at'
                      and p.[type] = 1
                      and len(p.value) < 60
                      and p.value like
                          N'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]%'
                ) z
                cross apply (
                    select try_cast(
                               stuff(left(z.value, len(z.value) - z.length), 11, 1, N' ')
                               as datetime2(6)
                           ) as moment,
                           iif(left(right(z.value, z.length), 1) = N'-', -1, 1)
                           * iif(
                               z.length < 5, 0,
                               60 * try_cast(substring(right(z.value, z.length), 2, 2) as int)
                               + try_cast(right(z.value, 2) as int)
                           ) as minutes
                ) t
            ) m;
            exec rowq.InternalCheckGiven @given, @max_body_length, @is_published;
            if @is_published = 1
                exec rowq.InternalCheckTopics @given;
            if exists (select 1 from @given g where g.name = N'headers' and g.kind = 5)
                exec rowq.InternalCheckHeaders @messages, @is_batch = 1;
            set @has_waiting = 0;
            select @has_waiting = 1
            from @given g
            where g.name in (N'predecessor_ids', N'predecessor_positions')
              and g.kind = 4;
            if @has_waiting = 1
            begin
                exec rowq.InternalNextMessageId @first_id output;
                exec rowq.InternalRefusePredecessors @messages, @first_id;
            end;

            insert into @parsed (
                position, lane, delay_seconds, run_at, message_type, dedup_key, key_place,
                max_attempts, group_key, on_dead, expire_seconds
            )
            -- A value that is not given becomes one below all valid ones and not null: for a null
            -- in an aggregate the engine sends a warning, which some drivers take for the result.
            -- Texts get a dot at the end, so that an empty text differs from a missing one and
            -- trailing blanks tell keys apart.
            select h.position, iif(h.priority < 0, 5, h.priority) * 2 + 1,
                   nullif(h.delay_seconds, -1), nullif(h.run_at, '19000101'),
                   left(h.message_type, len(nullif(h.message_type, N'')) - 1),
                   left(h.dedup_key, len(nullif(h.dedup_key, N'')) - 1), 1,
                   nullif(h.max_attempts, 0),
                   left(h.group_key, len(nullif(h.group_key, N'')) - 1), nullif(h.on_dead, N''),
                   nullif(h.expire_seconds, 0)
            from (
                select g.position,
                       max(iif(g.name = N'priority', coalesce(try_cast(g.value as int), -1), -1))
                           as priority,
                       max(
                           iif(
                               g.name = N'delay_seconds',
                               coalesce(try_cast(g.value as float), -1), -1
                           )
                       ) as delay_seconds,
                       max(coalesce(g.moment, '19000101')) as run_at,
                       max(iif(g.name = N'message_type' and g.kind > 0, g.value + N'.', N''))
                           as message_type,
                       max(iif(g.name = N'dedup_key' and g.kind > 0, g.value + N'.', N''))
                           as dedup_key,
                       max(iif(g.name = N'max_attempts', coalesce(try_cast(g.value as int), 0), 0))
                           as max_attempts,
                       max(iif(g.name = N'group_key' and g.kind > 0, g.value + N'.', N''))
                           as group_key,
                       max(iif(g.name = N'on_predecessor_dead' and g.kind > 0, g.value, N''))
                           as on_dead,
                       max(
                           iif(
                               g.name = N'expire_seconds',
                               coalesce(try_cast(g.value as float), 0), 0
                           )
                       ) as expire_seconds
                from @given g
                group by g.position
            ) h
            option (order group, maxdop 1, keepfixed plan);

            if @owns_transaction = 1
                begin transaction;
            if @is_published = 0
                exec rowq.InternalLockPartShared @part_id, @queue_name;
            else
            begin
                exec rowq.InternalBoundQueues @messages, @queues output;
                insert into @bound (turn, position)
                select cast(q.[key] as int), cast(p.value as int)
                from openjson(@queues) q
                cross apply openjson(q.value, N'$.places') p
                option (maxdop 1, keepfixed plan);
                exec rowq.InternalCheckBodies @given, @queues;
            end;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            -- A sort of whole messages would get memory for one row, and go to tempdb.
            if exists (select 1 from @parsed p where p.dedup_key is not null)
                update p
                set key_place = f.place
                from @parsed p
                inner join (
                    select k.position,
                           row_number() over (
                               partition by convert(varbinary(802), k.dedup_key + N'.')
                               order by k.position
                           ) as place
                    from @parsed k
                    where k.dedup_key is not null
                ) f on f.position = p.position
                option (hash join, maxdop 1, keepfixed plan);
            if @is_published = 1
                update p
                set message_type = g.value
                from @parsed p
                inner join @given g
                    on g.position = p.position
                   and g.name = N'topic'
                where p.message_type is null
                option (hash join, maxdop 1, keepfixed plan);
            set @turn = 0;
            while 1 = 1
            begin
                -- A batch of enqueue_batch has one turn, for its queue.
                if @is_published = 1
                begin
                    select @part_id = cast(json_value(q.value, N'$.part_id') as int),
                           @group_limit = cast(json_value(q.value, N'$.group_limit') as int)
                    from openjson(@queues) q
                    where q.[key] = cast(@turn as nvarchar(10));
                    if @@rowcount = 0
                        break;
                end;
                set @now = sysutcdatetime();
                insert into @new (
                    position, message_id, key_bytes, key_place, lane, due_at, group_key, on_dead
                )
                -- The ids follow the order of the batch, because they order messages that are due
                -- at the same moment.
                select p.position, next value for rowq.message_seq over (order by p.position),
                       iif(p.dedup_key is null, null, convert(varbinary(802), p.dedup_key + N'.')),
                       p.key_place, p.lane, iif(d.due_at > @now, d.due_at, null),
                       convert(varbinary(802), p.group_key + N'.'), p.on_dead
                from @parsed p
                cross apply (
                    select coalesce(
                        p.run_at,
                        dateadd(
                            microsecond,
                            cast(round((p.delay_seconds - floor(p.delay_seconds)) * 1e6, 0) as int),
                            dateadd(second, cast(floor(p.delay_seconds) as int), @now)
                        )
                    )
                ) d (due_at)
                where @is_published = 0
                   or exists (
                       select 1
                       from @bound b
                       where b.turn = @turn
                         and b.position = p.position
                   );
                -- The place of a key counts among the messages of this queue.
                if @is_published = 1
                    update n
                    set key_place = f.place
                    from @new n
                    inner join (
                        select k.position,
                               row_number() over (
                                   partition by k.key_bytes order by k.position
                               ) as place
                        from @new k
                        where k.key_bytes is not null
                    ) f on f.position = n.position
                    option (hash join, maxdop 1, keepfixed plan);

                -- Insert all keys at once, in key order, so that two batches with the same keys
                -- cannot wait for each other. A key whose owner was finished in between is free
                -- again: try once more.
                while exists (
                    select 1 from @new n where n.key_bytes is not null and n.holder is null
                )
                begin
                    insert into rowq.dedup with (rowlock) (part_id, dedup_key, message_id)
                    select @part_id, n.key_bytes, n.message_id
                    from @new n
                    where n.key_bytes is not null
                      and n.key_place = 1
                      and n.holder is null
                      and not exists (
                          select 1
                          from rowq.dedup d
                              with (
                                  rowlock, readcommittedlock,
                                  forceseek (dedup_pk (part_id, dedup_key))
                              )
                          where d.part_id = @part_id
                            and d.dedup_key = n.key_bytes
                      )
                    order by n.key_bytes
                    option (loop join, maxdop 1, keepfixed plan);
                    update n
                    set holder = d.message_id
                    from @new n
                    inner join rowq.dedup d
                        with (rowlock, readcommittedlock, forceseek (dedup_pk (part_id, dedup_key)))
                        on d.part_id = @part_id
                       and d.dedup_key = n.key_bytes
                    where n.holder is null
                    option (loop join, force order, maxdop 1, keepfixed plan);
                end;
                update @new set holder = message_id where key_bytes is null;

                exec rowq.InternalStoreBatch
                    @part_id, @group_limit, @messages, @has_waiting, @now, @parsed, @new;
                if @is_published = 0
                    break;
                insert into @stored (turn, position, message_id, is_new)
                select @turn, n.position, n.holder, iif(n.holder = n.message_id, 1, 0)
                from @new n;
                delete from @new;
                set @turn += 1;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
            delete from @given;
            delete from @parsed;
            delete from @new;
            delete from @bound;
            delete from @stored;
        end catch;
    end;

    if @is_published = 0
        select n.position, n.holder as message_id,
               iif(n.holder = n.message_id, N'enqueued', N'duplicate') as outcome
        from @new n
        order by n.position;
    else
        select s.position,
               cast(json_value(q.value, N'$.queue_name') as nvarchar(200)) as queue_name,
               s.message_id, iif(s.is_new = 1, N'enqueued', N'duplicate') as outcome
        from openjson(@queues) q
        inner join @stored s on s.turn = cast(q.[key] as int)
        order by s.turn, s.position
        option (loop join, force order, maxdop 1, keepfixed plan);
end
go
