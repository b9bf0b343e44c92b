-- Store: new messages, dedup keys, and delayed messages that are due.
--
-- A message is one row of message and one row of the table where it waits: ready, delayed,
-- group_waiting or blocked. A batch takes a few statements, not a few per message. An unfinished
-- message with a dedup key has a row in dedup. A producer of the same key waits for that row and
-- gets the first message's id back as a duplicate. promote moves due messages from delayed to
-- ready, or into their groups.
--
--   enqueue, publish, check_schedule -> check_message
--   enqueue_batch -> check_input
--   enqueue -> next_message_id, reserve_dedup_key
--   publish, enqueue_tick -> store -> next_message_id, reserve_dedup_key
--   publish_batch -> enqueue_batch -> next_message_id, store_batch
--   retry_later, fail_or_release -> push_delayed -> push_ready
--   reset, release_group_slots, run_deferred, ... -> push_ready
--   dequeue, maintain_delivery -> promote -> promote_group_waiting, push_ready
--
-- Writes dedup, delayed, expiry, group_waiting, message, ready. Only reads blocked, dead, lane,
-- queue_lock.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalCheckMessage
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @delay_seconds float,
    @run_at datetime2(6),
    @dedup_key nvarchar(max),
    @max_attempts int,
    @group_key nvarchar(max),
    @predecessor_ids nvarchar(max),
    @on_predecessor_dead nvarchar(max),
    @expire_seconds float,
    @producer_name nvarchar(max)
as
begin
-- purpose   Refuse invalid arguments of enqueue.
-- errors    RQ711
    set nocount on;
    declare @error nvarchar(200);
    declare @is_object bit = 0;

    if @priority is null or @priority not between 0 and 9
        exec rowq.InternalCheckRange N'priority', @priority, 0, 9, @is_required = 1;
    if @delay_seconds not between 0 and 315360000
        exec rowq.InternalCheckRange N'delay_seconds', @delay_seconds, 0, 315360000;
    if @max_attempts not between 0 and 10000
        exec rowq.InternalCheckRange N'max_attempts', @max_attempts, 0, 10000;
    if @expire_seconds not between 0.001e0 and 315360000
        exec rowq.InternalCheckRange N'expire_seconds', @expire_seconds, 0.001e0, 315360000;

    -- openjson reports an object as type 5. It raises an error for invalid JSON or nesting above
    -- 128, so check isjson first: of the headers, and of the headers as deep inside other JSON as
    -- they are ever read.
    if isjson(@headers) = 1 and isjson(concat(N'[{"headers":', @headers, N'}]')) = 1
        select @is_object = iif(max(j.[type]) = 5, 1, 0)
        from openjson(concat(N'[', @headers, N']')) j;

    -- A dot at the end makes trailing blanks count. The collation counts an emoji as one character.
    set @error = case
        when @message_type is not null
            and len((@message_type + N'.') collate Latin1_General_100_CI_AS_SC) > 201
            then N'message_type must be at most 200 characters'
        when @headers is not null and @is_object = 0
            then N'headers must be a JSON object'
        when datalength(@headers) / 2 > 65536
            and len((@headers + N'.') collate Latin1_General_100_CI_AS_SC) > 65537
            then N'headers must be at most 65536 characters'
        when @delay_seconds is not null and @run_at is not null
            then N'delay_seconds and run_at are mutually exclusive'
        when @run_at > dateadd(day, 3650, sysutcdatetime())
            then N'run_at must be within the next 10 years'
        when @dedup_key is not null
            and len((@dedup_key + N'.') collate Latin1_General_100_CI_AS_SC) not between 2 and 201
            then N'dedup_key must be 1 to 200 characters'
        when left(@dedup_key, 9) collate Latin1_General_100_BIN2 = N'schedule:'
            then N'dedup_key must not begin with schedule:, which is reserved'
        when @group_key is not null
            and len((@group_key + N'.') collate Latin1_General_100_CI_AS_SC) not between 2 and 201
            then N'group_key must be 1 to 200 characters'
        when (@on_predecessor_dead + N'.') collate Latin1_General_100_BIN2
            not in (N'hold.', N'continue.', N'fail.')
            then concat(
                N'on_predecessor_dead must be hold, continue or fail, got ',
                left(@on_predecessor_dead, 100)
            )
        when @producer_name is not null
            and len((@producer_name + N'.') collate Latin1_General_100_CI_AS_SC) > 201
            then N'producer_name must be at most 200 characters'
    end;
    if @error is not null
        exec rowq.InternalRefuse @error;
    if @predecessor_ids is not null
        exec rowq.InternalCheckIds @predecessor_ids, N'predecessor_ids';

    if @headers is not null
    begin
        set @headers = concat(N'[{"headers":', @headers, N'}]');
        exec rowq.InternalCheckHeaders @headers, @is_batch = 0;
    end;
end
go

create or alter procedure rowq.InternalCheckInput
    @input rowq.input_list readonly,
    @max_body_length int,
    @is_published bit
as
begin
-- purpose   Refuse a batch with an invalid message, except for its topic.
-- errors    RQ711
    set nocount on;
    declare @error nvarchar(200);

    -- kind is openjson's type: 0 null, 1 text, 2 number, 3 boolean, 4 array, 5 object.
    select top (1) @error = concat(left(f.error, 100), N' (message ', g.position, N')')
    from @input g
    cross apply (
        select case
            when g.name is null
                then iif(g.kind = 5, null, N'a message must be a JSON object')
            when g.name not in (
                    N'body', N'body_base64', N'message_type', N'headers', N'priority',
                    N'delay_seconds', N'run_at', N'dedup_key', N'max_attempts', N'group_key',
                    N'predecessor_ids', N'predecessor_positions', N'on_predecessor_dead', N'topic',
                    N'expire_seconds', N'producer_name'
                )
                or g.name like N'% '
                or g.name = N'topic' and @is_published = 0
                then concat(N'unknown key ', g.name)
            when @is_published = 1
                and g.name in (
                    N'predecessor_ids', N'predecessor_positions', N'on_predecessor_dead'
                )
                then N'a published message must not have predecessors'
            when g.kind = 0
                then null
            when g.name in (N'body', N'body_base64') and g.size > @max_body_length
                then concat(
                    N'body must be at most ', @max_body_length,
                    N' characters (max_body_length), got ', g.size
                )
            when g.name = N'body'
                then null
            when g.name = N'headers' and g.kind = 5
                then iif(g.size > 65536, N'headers must be at most 65536 characters', null)
            when g.name = N'headers'
                then N'headers must be a JSON object'
            when g.name in (N'priority', N'max_attempts')
                and (g.kind <> 2 or g.value like N'%[^0-9-]%' or try_cast(g.value as int) is null)
                then concat(g.name, N' must be an integer, got ', left(g.value, 40))
            when g.name = N'priority'
                then iif(
                    try_cast(g.value as int) between 0 and 9, null,
                    concat(N'priority must be between 0 and 9, got ', g.value)
                )
            when g.name = N'max_attempts'
                then iif(
                    try_cast(g.value as int) between 0 and 10000, null,
                    concat(N'max_attempts must be between 0 and 10000, got ', g.value)
                )
            when g.name = N'delay_seconds'
                then case
                    when g.kind <> 2 or try_cast(g.value as float) is null
                        then N'delay_seconds must be a JSON number'
                    when try_cast(g.value as float) not between 0 and 315360000
                        then concat(
                            N'delay_seconds must be between 0 and 315360000, got ',
                            left(g.value, 40)
                        )
                end
            when g.name = N'expire_seconds'
                then case
                    when g.kind <> 2 or try_cast(g.value as float) is null
                        then N'expire_seconds must be a JSON number'
                    when try_cast(g.value as float) not between 0.001e0 and 315360000
                        then concat(
                            N'expire_seconds must be between 0.001 and 315360000, got ',
                            left(g.value, 40)
                        )
                end
            when g.name in (N'predecessor_ids', N'predecessor_positions')
                then iif(g.kind = 4, null, concat(g.name, N' must be a JSON array'))
            when g.kind <> 1
                then concat(g.name, N' must be a JSON string')
            when g.name = N'on_predecessor_dead'
                and g.value + N'.' not in (N'hold.', N'continue.', N'fail.')
                then concat(
                    N'on_predecessor_dead must be hold, continue or fail, got ', left(g.value, 40)
                )
            when g.name in (N'message_type', N'producer_name') and g.size > 200
                then concat(g.name, N' must be at most 200 characters')
            when g.name in (N'dedup_key', N'group_key') and g.size not between 1 and 200
                then concat(g.name, N' must be 1 to 200 characters')
            when g.name = N'dedup_key' and left(g.value, 9) = N'schedule:'
                then N'dedup_key must not begin with schedule:, which is reserved'
            when g.name = N'body_base64' and g.is_base64 = 0
                then N'body_base64 must be valid base64'
            when g.name = N'run_at' and g.moment is null
                then concat(N'run_at must be an ISO 8601 timestamp, got ', left(g.value, 40))
            when g.name = N'run_at' and g.moment > dateadd(day, 3650, sysutcdatetime())
                then N'run_at must be within the next 10 years'
        end
    ) f (error)
    where f.error is not null
    order by g.position;
    if @error is not null
        exec rowq.InternalRefuse @error;

    select top (1) @error = concat(
        iif(
            h.bodies > 1, N'body and body_base64 are mutually exclusive',
            N'delay_seconds and run_at are mutually exclusive'
        ),
        N' (message ', h.position, N')'
    )
    from (
        select g.position,
               sum(iif(g.name in (N'body', N'body_base64'), 1, 0)) as bodies,
               sum(iif(g.name in (N'delay_seconds', N'run_at'), 1, 0)) as times
        from @input g
        where g.kind > 0
        group by g.position
    ) h
    where h.bodies > 1 or h.times > 1
    order by h.position;
    if @error is not null
        exec rowq.InternalRefuse @error;
end
go

create or alter procedure rowq.InternalNextMessageId
    @message_id bigint output
as
begin
-- purpose   Return the id of a new message.
-- differs   elsewhere an expression: here it does not compile (error 11739) under the caller's
--           rowcount; a helper is compiled after the routine has reset it
    set nocount on;
    set @message_id = next value for rowq.message_seq;
end
go

create or alter procedure rowq.InternalReserveDedupKey
    @queue_id int,
    @dedup_key nvarchar(max),
    @message_id bigint,
    @owner bigint output
as
begin
-- purpose   Reserve a dedup key for a message, or return the unfinished message that owns it.
-- locks     the dedup row; waits for sessions that insert or delete it
    set nocount on;
    declare @key varbinary(802) = convert(varbinary(802), @dedup_key + N'.');
    set @owner = null;

    while 1 = 1
    begin
        select @owner = d.message_id
        from rowq.dedup d with (rowlock, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.dedup_key = @key;
        if @owner is not null
            break;

        -- If another session has inserted the key, this inserts no row and raises no error
        -- (ignore_dup_key): read again, because the key may be gone already.
        insert into rowq.dedup with (rowlock) (queue_id, dedup_key, message_id)
        values (@queue_id, @key, @message_id);
        if @@rowcount = 1
            break;
    end;
end
go

create or alter procedure rowq.InternalStore
    @queue_id int,
    @group_limit int,
    @body nvarchar(max),
    @body_binary varbinary(max),
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @delay_seconds float,
    @run_at datetime2(6),
    @dedup_key nvarchar(max),
    @max_attempts int,
    @group_key nvarchar(max),
    @expire_seconds float,
    @producer_name nvarchar(max),
    @message_id bigint output,
    @outcome nvarchar(20) output
as
begin
-- purpose   Store one checked message without predecessors.
-- locks     as enqueue
-- differs   elsewhere publish calls enqueue; here that would return enqueue's rows to the caller
    set nocount on;
    declare @now datetime2(6);
    declare @due_at datetime2(6);
    declare @expires_at datetime2(6);
    declare @lane smallint = @priority * 2 + 1;
    declare @is_open bit;
    declare @group_bytes varbinary(802) = convert(varbinary(802), @group_key + N'.');
    declare @has_slot bit = 1;
    declare @owner bigint;

    exec rowq.InternalNextMessageId @message_id output;
    if @dedup_key is not null
        exec rowq.InternalReserveDedupKey @queue_id, @dedup_key, @message_id, @owner output;
    if @owner is not null
    begin
        set @message_id = @owner;
        set @outcome = N'duplicate';
        return;
    end;

    set @now = sysutcdatetime();
    set @due_at = coalesce(
        @run_at,
        dateadd(
            microsecond, cast(round((@delay_seconds - floor(@delay_seconds)) * 1e6, 0) as int),
            dateadd(second, cast(floor(@delay_seconds) as int), @now)
        )
    );
    if @due_at <= @now
        set @due_at = null;
    if @group_key is not null and @due_at is null
    begin
        exec rowq.InternalTakeGroupSlot @queue_id, @group_bytes, @group_limit, @has_slot output;
        -- Taking a slot may have waited; the position of a ready message is the current time.
        set @now = sysutcdatetime();
    end;
    set @expires_at = dateadd(
        microsecond, cast(round((@expire_seconds - floor(@expire_seconds)) * 1e6, 0) as int),
        dateadd(second, cast(floor(@expire_seconds) as int), @now)
    );
    insert into rowq.message with (rowlock) (
        queue_id, message_id, max_attempts, enqueued_at, due_at, expires_at, message_type,
        dedup_key, headers, body, body_binary, group_key, producer_name
    )
    values (
        @queue_id, @message_id, @max_attempts, @now, @due_at, @expires_at, @message_type,
        @dedup_key, @headers, @body, @body_binary, @group_key, @producer_name
    );

    select @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = @lane;
    if @is_open = 0
        exec rowq.InternalOpenLanes @queue_id, @lane;
    if @due_at is not null
        insert into rowq.delayed with (rowlock) (queue_id, due_at, message_id, lane, group_key)
        values (@queue_id, @due_at, @message_id, @lane, @group_bytes);
    else if @has_slot = 1
        insert into rowq.ready with (rowlock) (queue_id, lane, seq, message_id)
        values (@queue_id, @lane, datediff_big(microsecond, '19700101', @now), @message_id);
    else
        insert into rowq.group_waiting with (rowlock) (queue_id, group_key, message_id, lane)
        values (@queue_id, @group_bytes, @message_id, @lane);
    -- If the message is not ready, maintain finds it by other keys.
    if @expires_at is not null
        insert into rowq.expiry with (rowlock)
            (queue_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            @queue_id,
            iif(@expires_at > dateadd(day, 1, @now), dateadd(day, 1, @now), @expires_at),
            @message_id, @message_id, @lane,
            datediff_big(microsecond, '19700101', @now)
        );
    set @outcome = N'enqueued';
end
go

create or alter procedure rowq.InternalEnqueueBatch
    @queue_name nvarchar(max),
    @messages nvarchar(max),
    @is_published bit = 0
as
begin
-- purpose   Store a batch in a queue, or in the queues bound to its topics, and return the rows.
-- locks     new rows; the queue, shared; dedup and group keys in key order, waiting as enqueue
--           does; as InternalStoreBatch; if published, as InternalBoundQueues, in the order of
--           queue names
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   only here: compiled after the routine has reset rowcount, as InternalNextMessageId
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_id int;
    declare @max_body_length int = 33554432;
    declare @uncounted_length int = 0;
    declare @group_limit int;
    declare @now datetime2(6);
    declare @is_array bit = 0;
    declare @has_waiting bit;
    declare @first_id bigint;
    declare @input rowq.input_list;
    declare @parsed rowq.parsed_list;
    declare @new rowq.new_list;
    declare @queues nvarchar(max);
    declare @turn int;
    -- turn is the index of a queue in @queues, and there is a row per message published to it.
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

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read opens the caller's transaction, at the caller's
            -- isolation level. @begun keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            -- Published bodies are all counted, because each queue has its own limit.
            if @is_published = 0
            begin
                exec rowq.InternalRequireQueue
                    @queue_name, @queue_id output, @max_body_length = @max_body_length output,
                    @group_limit = @group_limit output;
                set @uncounted_length = @max_body_length;
            end;
            -- openjson reports an array as type 4. It raises an error for invalid JSON or nesting
            -- above 128, so check isjson first. The text is an array if it is the only value inside
            -- another.
            if isjson(concat(N'[', @messages, N']')) = 1
                select @is_array = iif(count(*) = 1 and min(j.[type]) = 4, 1, 0)
                from openjson(concat(N'[', @messages, N']')) j;
            if @is_array = 1
                select @is_array = iif(count(*) > 10000, 0, 1)
                from openjson(@messages) j;
            if @is_array = 0
                exec rowq.InternalRefuse N'messages must be a JSON array of at most 10000 objects';

            -- Read short values, and of long ones only what the checks need.
            insert into @input (position, name, kind, value, size, is_base64, moment)
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
                       -- 4 base64 characters are 3 bytes, less 1 for each = at the end.
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
                   m.run_at
            from openjson(@messages) e
            outer apply openjson(iif(e.[type] = 5, e.value, N'{}')) p
            outer apply (
                -- 2030-12-31T23:59:59.123456+01:00; the zone may also be Z or +0100, or missing for
                -- UTC. The bounds leave room for the minutes.
                select iif(
                           t.minutes between -840 and 840
                               and t.local_time between '19000102' and '99981231',
                           dateadd(minute, -t.minutes, t.local_time), null
                       ) as run_at
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
                           ) as local_time,
                           iif(left(right(z.value, z.length), 1) = N'-', -1, 1)
                           * iif(
                               z.length < 5, 0,
                               60 * try_cast(substring(right(z.value, z.length), 2, 2) as int)
                               + try_cast(right(z.value, 2) as int)
                           ) as minutes
                ) t
            ) m;
            exec rowq.InternalCheckInput @input, @max_body_length, @is_published;
            if @is_published = 1
                exec rowq.InternalCheckTopics @input;
            if exists (select 1 from @input g where g.name = N'headers' and g.kind = 5)
                exec rowq.InternalCheckHeaders @messages, @is_batch = 1;
            set @has_waiting = 0;
            select @has_waiting = 1
            from @input g
            where g.name in (N'predecessor_ids', N'predecessor_positions')
              and g.kind = 4;
            if @has_waiting = 1
            begin
                exec rowq.InternalNextMessageId @first_id output;
                exec rowq.InternalRefusePredecessors @messages, @first_id;
            end;

            insert into @parsed (
                position, lane, delay_seconds, run_at, message_type, dedup_key, key_place,
                max_attempts, group_key, on_dead, expire_seconds, producer_name
            )
            -- A missing value becomes an invalid one, not null: for nulls in an aggregate the
            -- engine sends a warning, which some drivers take for the result. A dot at the end of
            -- texts makes empty texts and trailing blanks count.
            select h.position, iif(h.priority < 0, 5, h.priority) * 2 + 1,
                   nullif(h.delay_seconds, -1), nullif(h.run_at, '19000101'),
                   left(h.message_type, len(nullif(h.message_type, N'')) - 1),
                   left(h.dedup_key, len(nullif(h.dedup_key, N'')) - 1), 1,
                   nullif(h.max_attempts, -1),
                   left(h.group_key, len(nullif(h.group_key, N'')) - 1), nullif(h.on_dead, N''),
                   nullif(h.expire_seconds, 0),
                   left(h.producer_name, len(nullif(h.producer_name, N'')) - 1)
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
                       max(
                           iif(g.name = N'max_attempts', coalesce(try_cast(g.value as int), -1), -1)
                       ) as max_attempts,
                       max(iif(g.name = N'group_key' and g.kind > 0, g.value + N'.', N''))
                           as group_key,
                       max(iif(g.name = N'on_predecessor_dead' and g.kind > 0, g.value, N''))
                           as on_dead,
                       max(
                           iif(
                               g.name = N'expire_seconds',
                               coalesce(try_cast(g.value as float), 0), 0
                           )
                       ) as expire_seconds,
                       max(iif(g.name = N'producer_name' and g.kind > 0, g.value + N'.', N''))
                           as producer_name
                from @input g
                group by g.position
            ) h
            option (order group, maxdop 1, keepfixed plan);

            if @owns_transaction = 1
                begin transaction;
            if @is_published = 0
                exec rowq.InternalLockQueueShared @queue_id, @queue_name;
            else
            begin
                exec rowq.InternalBoundQueues @messages, @queues output;
                insert into @bound (turn, position)
                select cast(q.[key] as int), cast(p.value as int)
                from openjson(@queues) q
                cross apply openjson(q.value, N'$.positions') p
                option (maxdop 1, keepfixed plan);
                exec rowq.InternalCheckBodies @input, @queues;
            end;

            -- Writes start here. If the client disconnects, xact_abort rolls back the transaction.
            set xact_abort on;
            -- Sort keys only: sorting whole messages would spill to tempdb.
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
                inner join @input g
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
                    select @queue_id = cast(json_value(q.value, N'$.queue_id') as int),
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
                -- Ids follow the order of the batch: they order messages of the same time.
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
                -- Number equal keys among the messages of this queue only.
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
                -- cannot deadlock. A key whose owner has finished in between is free again: retry.
                while exists (
                    select 1 from @new n where n.key_bytes is not null and n.owner is null
                )
                begin
                    insert into rowq.dedup with (rowlock) (queue_id, dedup_key, message_id)
                    select @queue_id, n.key_bytes, n.message_id
                    from @new n
                    where n.key_bytes is not null
                      and n.key_place = 1
                      and n.owner is null
                      and not exists (
                          select 1
                          from rowq.dedup d
                              with (
                                  rowlock, readcommittedlock,
                                  forceseek (dedup_pk (queue_id, dedup_key))
                              )
                          where d.queue_id = @queue_id
                            and d.dedup_key = n.key_bytes
                      )
                    order by n.key_bytes
                    option (loop join, maxdop 1, keepfixed plan);
                    update n
                    set owner = d.message_id
                    from @new n
                    inner join rowq.dedup d
                        with (
                            rowlock, readcommittedlock, forceseek (dedup_pk (queue_id, dedup_key))
                        )
                        on d.queue_id = @queue_id
                       and d.dedup_key = n.key_bytes
                    where n.owner is null
                    option (loop join, force order, maxdop 1, keepfixed plan);
                end;
                update @new set owner = message_id where key_bytes is null;

                exec rowq.InternalStoreBatch
                    @queue_id, @group_limit, @messages, @has_waiting, @now, @parsed, @new;
                if @is_published = 0
                    break;
                insert into @stored (turn, position, message_id, is_new)
                select @turn, n.position, n.owner, iif(n.owner = n.message_id, 1, 0)
                from @new n;
                delete from @new;
                set @turn += 1;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is uncommittable.
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
            delete from @input;
            delete from @parsed;
            delete from @new;
            delete from @bound;
            delete from @stored;
        end catch;
    end;

    if @is_published = 0
        select n.position, n.owner as message_id,
               iif(n.owner = n.message_id, N'enqueued', N'duplicate') as outcome
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

create or alter procedure rowq.InternalStoreBatch
    @queue_id int,
    @group_limit int,
    @messages nvarchar(max),
    @has_waiting bit,
    @now datetime2(6),
    @parsed rowq.parsed_list readonly,
    @new rowq.new_list readonly
as
begin
-- purpose   Store the messages of a batch, except for duplicates.
-- locks     new rows; group keys in key order, waiting as enqueue does; as InternalBlockBatch
-- differs   elsewhere it also parses the batch; here that must be done before the call writes
    set nocount on;
    declare @lane smallint = -1;
    -- All messages have the same time, and their ids order them. The clock stands still for up to
    -- 16 ms, so later times could pass the messages of a later call.
    declare @seq bigint = datediff_big(microsecond, '19700101', @now);
    declare @waiting table (
        message_id bigint not null primary key
    );
    declare @joining rowq.message_list;

    insert into rowq.message with (rowlock) (
        queue_id, message_id, max_attempts, enqueued_at, due_at, expires_at, message_type,
        dedup_key, headers, body, body_binary, group_key, producer_name
    )
    select @queue_id, n.message_id, p.max_attempts, @now, n.due_at,
           dateadd(
               microsecond,
               cast(round((p.expire_seconds - floor(p.expire_seconds)) * 1e6, 0) as int),
               dateadd(second, cast(floor(p.expire_seconds) as int), @now)
           ),
           p.message_type, p.dedup_key, b.headers, coalesce(b.body, b.body_json),
           b.body_binary, p.group_key, p.producer_name
    from openjson(@messages) e
    inner join @new n on n.position = cast(e.[key] as int) + 1
    inner join @parsed p on p.position = n.position
    outer apply openjson(e.value) with (
        headers     nvarchar(max) '$.headers' as json,
        body        nvarchar(max) '$.body',
        body_json   nvarchar(max) '$.body' as json,
        body_binary varbinary(max) '$.body_base64'
    ) b
    where n.owner = n.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    while @lane is not null
    begin
        select @lane = min(n.lane)
        from @new n
        inner join rowq.lane l with (readuncommitted, forceseek (lane_pk (queue_id, lane)))
            on l.queue_id = @queue_id
           and l.lane = n.lane
           and l.is_open = 0
        where n.lane > @lane
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @lane is not null
            exec rowq.InternalOpenLanes @queue_id, @lane;
    end;

    if @has_waiting = 1
    begin
        exec rowq.InternalBlockBatch @queue_id, @messages, @new;
        insert into @waiting (message_id)
        select n.message_id
        from @new n
        where n.owner = n.message_id
          and (
              exists (
                  select 1
                  from rowq.blocked b with (forceseek (blocked_pk (queue_id, message_id)))
                  where b.queue_id = @queue_id
                    and b.message_id = n.message_id
              )
              or exists (
                  select 1
                  from rowq.dead d with (forceseek (dead_pk (queue_id, message_id)))
                  where d.queue_id = @queue_id
                    and d.message_id = n.message_id
              )
          )
        option (loop join, maxdop 1, keepfixed plan);
    end;

    insert into rowq.ready with (rowlock) (queue_id, lane, seq, message_id)
    select @queue_id, n.lane, @seq, n.message_id
    from @new n
    where n.owner = n.message_id
      and n.due_at is null
      and n.group_key is null
      and not exists (select 1 from @waiting w where w.message_id = n.message_id)
    option (maxdop 1, keepfixed plan);
    insert into rowq.delayed with (rowlock) (queue_id, due_at, message_id, lane, group_key)
    select @queue_id, n.due_at, n.message_id, n.lane, n.group_key
    from @new n
    where n.owner = n.message_id
      and n.due_at is not null
      and not exists (select 1 from @waiting w where w.message_id = n.message_id)
    option (maxdop 1, keepfixed plan);
    if exists (select 1 from @new n where n.group_key is not null)
    begin
        insert into @joining (message_id, lane, place, attempt, group_key)
        select n.message_id, n.lane, @seq, 0, n.group_key
        from @new n
        where n.owner = n.message_id
          and n.due_at is null
          and n.group_key is not null
          and not exists (select 1 from @waiting w where w.message_id = n.message_id);
        exec rowq.InternalJoinGroups @queue_id, @group_limit, @joining;
    end;

    -- If a message is not ready, maintain finds it by other keys.
    if exists (select 1 from @parsed p where p.expire_seconds is not null)
        insert into rowq.expiry with (rowlock)
            (queue_id, expires_at, expiry_id, message_id, lane, seq)
        select @queue_id,
               iif(m.expires_at > dateadd(day, 1, @now), dateadd(day, 1, @now), m.expires_at),
               n.message_id, n.message_id, n.lane,
               @seq
        from @new n
        inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
            on m.queue_id = @queue_id
           and m.message_id = n.message_id
        where n.owner = n.message_id
          and m.expires_at is not null
        option (loop join, force order, maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalPushDelayed
    @queue_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max) = null,
    @keeps_error bit = 0
as
begin
-- purpose   Delay messages until they are due; make those that are already due ready.
-- locks     message rows, waiting for them; new delayed, ready and expiry rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);
    declare @due rowq.message_list;

    update m
    set last_error = iif(@keeps_error = 1, m.last_error, @text), due_at = j.due_at
    from @messages j
    inner join rowq.message m with (rowlock, forceseek)
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    insert into rowq.delayed with (rowlock) (queue_id, due_at, message_id, lane, attempt)
    select @queue_id, j.due_at, j.message_id, j.lane, j.attempt
    from @messages j
    where j.due_at > @now
    option (maxdop 1, keepfixed plan);
    -- InternalPushReady below writes a newer row for those that are ready.
    exec rowq.InternalRecordExpiry @queue_id, @messages;

    insert into @due (message_id, lane, place, attempt)
    select j.message_id, j.lane, j.place, j.attempt
    from @messages j
    where j.due_at <= @now;
    if @@rowcount > 0
        exec rowq.InternalPushReady @queue_id, @due;
end
go

create or alter procedure rowq.InternalPushReady
    @queue_id int,
    @messages rowq.message_list readonly,
    @is_front bit = 0,
    @spent smallint = 0
as
begin
-- purpose   Append messages to their lanes or to the front; subtract @spent from their attempts.
-- locks     new ready and expiry rows
    set nocount on;
    declare @seq bigint = datediff_big(microsecond, '19700101', sysutcdatetime());
    declare @placed rowq.message_list;

    -- The clock stands still for up to 16 ms, and message_id orders messages of the same time. So
    -- give a message a later time than the one before it only if its id is lower: later times would
    -- put it behind messages that are enqueued while the clock stands still.
    insert into @placed (message_id, lane, place, attempt)
    select h.message_id, h.to_lane,
           @seq + sum(iif(h.last_id > h.message_id, 1, 0)) over (
               partition by h.to_lane
               order by h.lane, h.place, h.message_id
               rows unbounded preceding
           ),
           h.attempt - @spent
    from (
        select l.message_id, l.lane, l.place, l.attempt, l.to_lane,
               lag(l.message_id) over (
                   partition by l.to_lane
                   order by l.lane, l.place, l.message_id
               ) as last_id
        from (
            select j.message_id, j.lane, j.place, j.attempt,
                   iif(@is_front = 1, j.lane / 2 * 2, j.lane) as to_lane
            from @messages j
        ) l
    ) h
    option (maxdop 1, keepfixed plan);
    insert into rowq.ready with (rowlock) (queue_id, lane, seq, message_id, attempt)
    select @queue_id, p.lane, p.place, p.message_id, p.attempt
    from @placed p
    option (maxdop 1, keepfixed plan);
    exec rowq.InternalRecordExpiry @queue_id, @placed, @is_ready = 1;
end
go

create or alter procedure rowq.InternalPromote
    @queue_id int,
    @limit int,
    @owns_transaction bit,
    @promoted int output
as
begin
-- purpose   Move up to @limit due messages to their lanes or groups, earliest first.
-- locks     delayed rows, skipping locked ones; new ready rows; lane -22 (callers); as
--           InternalPromoteGroupWaiting
-- differs   in the caller's transaction, leaves messages with groups to other calls
    set nocount on;
    declare @callers_lane smallint;
    declare @floor bigint;
    declare @since datetime2(6);
    declare @now datetime2(6) = sysutcdatetime();
    declare @first datetime2(6);
    declare @to bigint;
    declare @due_at datetime2(6);
    declare @message_id bigint = 0;
    declare @lane smallint;
    declare @group_key varbinary(802);
    declare @has_slot bit;
    declare @due rowq.message_list;
    declare @moved table (
        due_at     datetime2(6) not null,
        message_id bigint not null,
        lane       smallint not null,
        attempt    smallint not null,
        group_key  varbinary(802) null,
        primary key (due_at, message_id)
    );

    -- In the caller's transaction, hold lane -22 shared until it ends, so that no floor passes rows
    -- that a rollback restores. @callers_lane keeps the value out of the caller's results.
    if @owns_transaction = 0
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.queue_id = @queue_id
          and l.lane = -22 /* callers */;
    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -2 /* delayed */;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    with head as (
        select top (@limit) d.queue_id, d.due_at, d.message_id, d.lane, d.attempt, d.group_key
        from rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.due_at >= @since
          and d.due_at <= @now
          and (@owns_transaction = 1 or d.group_key is null)
        order by d.due_at, d.message_id
    )
    delete from head
    output deleted.due_at, deleted.message_id, deleted.lane, deleted.attempt, deleted.group_key
    into @moved (due_at, message_id, lane, attempt, group_key)
    option (maxdop 1, keepfixed plan);
    set @promoted = @@rowcount;
    if @promoted = 0
        return;

    insert into @due (message_id, lane, place, attempt)
    select j.message_id, j.lane, datediff_big(microsecond, '19700101', j.due_at), j.attempt
    from @moved j
    where j.group_key is null;
    if @@rowcount < @promoted
    begin
        set @due_at = @since;
        while 1 = 1
        begin
            select top (1) @due_at = j.due_at, @message_id = j.message_id, @lane = j.lane,
                   @group_key = j.group_key
            from @moved j
            where j.due_at >= @due_at
              and (j.due_at > @due_at or j.message_id > @message_id)
              and j.group_key is not null
            order by j.due_at, j.message_id;
            if @@rowcount = 0
                break;
            exec rowq.InternalPromoteGroupWaiting
                @queue_id, @group_key, @message_id, @lane, @has_slot output;
            if @has_slot = 1
                insert into @due (message_id, lane, place, attempt)
                values (@message_id, @lane, datediff_big(microsecond, '19700101', @due_at), 0);
            if @has_slot is null
                set @promoted -= 1;
        end;
    end;
    exec rowq.InternalPushReady @queue_id, @due;

    -- Moving the floor costs a write, so only some calls do it. It moves to the first promoted
    -- message, but stays 0.5 seconds behind, because newer messages may not be committed yet.
    if @owns_transaction = 1 and abs(cast(checksum(newid()) as bigint)) % 12 < @promoted
    begin
        select top (1) @first = j.due_at from @moved j order by j.due_at;
        if @first > dateadd(millisecond, -500, @now)
            set @first = dateadd(millisecond, -500, @now);
        set @to = datediff_big(microsecond, '19700101', @first);
        if @to > @floor
            exec rowq.InternalMoveFloor @queue_id, -2 /* delayed */, @floor, @to;
    end;
end
go

create or alter procedure rowq.InternalPromoteGroupWaiting
    @queue_id int,
    @group_key varbinary(802),
    @message_id bigint,
    @lane smallint,
    @has_slot bit output
as
begin
-- purpose   Let a due message join its group.
-- locks     as InternalTryJoinGroup; the message row, without waiting; new delayed and expiry rows
--
-- @has_slot is 1 if the caller must make the message ready, 0 if it waits in its group, null if it
-- is delayed by another 0.5 seconds.
    set nocount on;
    declare @due_at datetime2(6) = dateadd(millisecond, 500, sysutcdatetime());
    declare @delayed rowq.message_list;

    exec rowq.InternalTryJoinGroup
        @queue_id, @group_key, @message_id, @lane, @has_slot output;
    if @has_slot is not null
        return;

    -- message.due_at finds a delayed message, so change both. If a producer that has named the
    -- message as a predecessor holds the row, change neither.
    update m
    set due_at = @due_at
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.queue_id = @queue_id
      and m.message_id = @message_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        select @due_at = m.due_at
        from rowq.message m with (forceseek)
        where m.queue_id = @queue_id
          and m.message_id = @message_id;
    insert into rowq.delayed with (rowlock) (queue_id, due_at, message_id, lane, group_key)
    values (@queue_id, @due_at, @message_id, @lane, @group_key);
    -- Record it, so that a session that has read the old time finds the message by the new one.
    insert into @delayed (message_id, lane, place, attempt) values (@message_id, @lane, 0, 0);
    exec rowq.InternalRecordExpiry @queue_id, @delayed;
end
go
