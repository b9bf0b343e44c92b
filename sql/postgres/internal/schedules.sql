-- Schedules: messages that maintain enqueues by cron or interval.
--
-- maintain locks each due schedule with skip locked, enqueues at most 100 of its ticks and sets
-- next_run_at in the same transaction, so a tick makes one message, or none yet after a rollback.
-- If a message is refused, its tick is skipped and last_error keeps the error; other schedules run.
-- Without overlap, the messages of a schedule share a dedup key. A schedule with counts_from end
-- checks once a second for that key while is_running; once the key is gone, its next tick is
-- interval_seconds away. Cron runs on local time, by the server's time zones: a local time that
-- occurs twice counts once; one inside a gap moves to its end. A parsed expression (bits) is 136
-- digits 0 or 1: 60 minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday, then 1 for a
-- fixed minute and hour, then 1 if day and weekday are both set.
--
--   create_schedule, alter_schedule -> check_schedule -> tick_headers, check_time_zone, next_tick
--   next_ticks -> check_time_zone
--   next_ticks -> next_tick -> next_cron, parse_cron
--   next_cron -> next_cron_local, local_to_utc, offset_change
--   local_to_utc -> offset_change
--   parse_cron -> parse_cron_field
--   alter_schedule, drop_schedule, run_schedule -> require_schedule
--   run_schedule -> enqueue_tick -> tick_headers
--   maintain_queue -> run_schedules -> run_due
--   run_due -> next_tick, enqueue_tick, skip_tick
--   run_due -> run_after_end -> next_tick, enqueue_tick
--   skip_tick -> next_tick
--
-- Writes dedup, message, schedule.

create or replace function rowq.internal_check_schedule(
    p_schedule rowq.schedule,
    p_queue    rowq.queue
)
returns timestamp with time zone
language plpgsql
as $$
-- purpose   Refuse an invalid schedule; return its first tick.
-- errors    RQ711
declare
    v_longest rowq.schedule := p_schedule;
    v_error   text;
    v_tick    timestamp with time zone;
begin
    v_longest.last_message_id := 9223372036854775807;
    perform rowq.internal_check_name('schedule_name', p_schedule.schedule_name);
    v_error := case
        when num_nonnulls(p_schedule.cron, p_schedule.interval_seconds) <> 1
            then 'exactly one of cron and interval_seconds is required'
        when p_schedule.missed is null or p_schedule.missed not in ('skip', 'once', 'all')
            then 'missed must be skip, once or all, got '
                || coalesce(left(p_schedule.missed, 100), 'null')
        when p_schedule.counts_from is null or p_schedule.counts_from not in ('start', 'end')
            then 'counts_from must be start or end, got '
                || coalesce(left(p_schedule.counts_from, 100), 'null')
        when p_schedule.counts_from = 'end' and p_schedule.cron is not null
            then 'counts_from end requires interval_seconds'
        when p_schedule.starts_at not between '2000-01-01 00:00Z' and '2100-01-01 00:00Z'
             or p_schedule.ends_at not between '2000-01-01 00:00Z' and '2100-01-01 00:00Z'
            then 'starts_at and ends_at must be between the years 2000 and 2100'
    end;
    v_error := coalesce(
        v_error,
        rowq.internal_message_error(
            p_schedule.body, p_schedule.body_binary, p_schedule.message_type,
            rowq.internal_tick_headers(v_longest, clock_timestamp()), p_schedule.priority, null,
            null, null, p_schedule.max_attempts, p_schedule.group_key, null, null, null, null
        ),
        rowq.internal_body_error(
            p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
        )
    );
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range(
        'interval_seconds', p_schedule.interval_seconds, 1, 315360000
    );
    perform rowq.internal_check_time_zone(p_schedule.time_zone);
    v_tick := rowq.internal_next_tick(p_schedule, clock_timestamp());
    if v_tick is null then
        raise exception
            'RQ711 invalid_argument: the schedule has no tick within 10 years or before ends_at'
            using errcode = 'RQ711';
    end if;
    return v_tick;
end;
$$;

create or replace function rowq.internal_tick_headers(
    p_schedule rowq.schedule,
    p_tick     timestamp with time zone
)
returns jsonb
language plpgsql
as $$
-- purpose   Return a tick's headers: the schedule's own, its name, the tick, the message before.
begin
    if jsonb_typeof(p_schedule.headers) <> 'object' then
        return p_schedule.headers;
    end if;
    return coalesce(p_schedule.headers, '{}'::jsonb) || jsonb_build_object(
        'schedule', p_schedule.schedule_name,
        'tick', to_char(p_tick at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ) || case
        when p_schedule.counts_from = 'end' and p_schedule.last_message_id is not null
            then jsonb_build_object('previous_message_id', p_schedule.last_message_id)
        else '{}'::jsonb
    end;
end;
$$;

create or replace function rowq.internal_check_time_zone(p_time_zone text)
returns void
language plpgsql
as $$
-- purpose   Refuse a time zone that the server does not know.
-- errors    RQ711
begin
    -- Skip the view for UTC: it reads every time zone from disk.
    if p_time_zone = 'UTC' then
        return;
    end if;
    -- A name without a slash, such as CET, may be an abbreviation: it has no summer time, and a
    -- session can redefine it.
    if p_time_zone not like '%/%' or p_time_zone is null or not exists (
        select
        from pg_timezone_names z
        where z.name = p_time_zone
    ) then
        raise exception 'RQ711 invalid_argument: time_zone must be UTC or a name the server '
            'knows, such as Europe/Berlin, got %', coalesce(left(p_time_zone, 100), 'null')
            using errcode = 'RQ711';
    end if;
end;
$$;

create or replace function rowq.internal_next_tick(
    p_schedule rowq.schedule,
    p_after    timestamp with time zone
)
returns timestamp with time zone
language plpgsql
as $$
-- purpose   Return the first tick of a schedule after p_after, or null.
declare
    c_after  constant timestamp with time zone
        := greatest(p_after, p_schedule.starts_at - interval '1 microsecond');
    v_step   bigint;
    v_passed bigint;
    v_count  bigint := 0;
    v_tick   timestamp with time zone;
begin
    if p_schedule.cron is not null then
        v_tick := rowq.internal_next_cron(
            rowq.internal_parse_cron(p_schedule.cron), p_schedule.time_zone, c_after
        );
    elsif p_schedule.counts_from = 'end' and p_after >= p_schedule.starts_at then
        v_tick := p_after + p_schedule.interval_seconds * interval '1 second';
    else
        -- Count microseconds from starts_at, so that ticks do not drift.
        v_step := round(p_schedule.interval_seconds * 1000000);
        v_passed := extract(epoch from c_after - p_schedule.starts_at) * 1000000;
        if v_passed >= 0 then
            v_count := v_passed / v_step + 1;
        end if;
        v_tick := p_schedule.starts_at + v_count * v_step * interval '1 microsecond';
    end if;
    -- Clients read no year beyond 9999.
    if v_tick > p_schedule.ends_at or v_tick >= '9999-12-31 00:00Z' then
        return null;
    end if;
    return v_tick;
end;
$$;

create or replace function rowq.internal_next_cron(
    p_bits      text,
    p_time_zone text,
    p_after     timestamp with time zone
)
returns timestamp with time zone
language plpgsql
as $$
-- purpose   Return the first time after p_after that matches p_bits; null if none within 10 years.
declare
    c_day    constant interval := interval '26 hours';
    v_local  timestamp;
    v_next   timestamp;
    v_from   timestamp with time zone;
    v_time   timestamp with time zone;
    v_change timestamp with time zone;
begin
    if substr(p_bits, 135, 1) = '1' then
        -- With a fixed minute and hour, each local time fires once.
        v_local := date_trunc('minute', p_after at time zone p_time_zone);
        loop
            v_local := rowq.internal_next_cron_local(p_bits, v_local + interval '1 minute');
            exit when v_local is null;
            v_time := rowq.internal_local_to_utc(v_local, p_time_zone);
            exit when v_time > p_after;
        end loop;
        return case when v_local is not null then v_time end;
    end if;

    -- Any other expression also fires in an hour that occurs twice. The next local time is as far
    -- away as the clocks say, unless the offset changes before it. Check 26 hours for a change,
    -- then go to 26 hours before that time: no change moves it further.
    v_from := date_trunc('minute', p_after) + interval '1 minute';
    loop
        v_local := v_from at time zone p_time_zone;
        v_next := rowq.internal_next_cron_local(p_bits, v_local);
        exit when v_next is null;
        v_time := v_from + extract(epoch from v_next - v_local) * interval '1 second';
        v_change := rowq.internal_offset_change(
            v_from, least(v_time, v_from + c_day), p_time_zone
        );
        if v_change is not null then
            v_from := v_change;
        elsif v_time <= v_from + c_day then
            return v_time;
        else
            v_from := greatest(v_from + c_day, v_time - c_day);
        end if;
    end loop;
    return null;
end;
$$;

create or replace function rowq.internal_next_cron_local(
    p_bits text,
    p_from timestamp without time zone
)
returns timestamp without time zone
language plpgsql
immutable
as $$
-- purpose   Return the first local minute from p_from on that matches p_bits; null if none within 10 years.
declare
    c_end        constant date := p_from::date + 3660;
    v_day        date := p_from::date;
    v_hour       integer := extract(hour from p_from);
    v_minute     integer := extract(minute from p_from);
    v_is_day     boolean;
    v_is_weekday boolean;
    v_steps      integer;
begin
    while v_day < c_end loop
        if substr(p_bits, 115 + extract(month from v_day)::integer, 1) = '0' then
            v_day := date_trunc('month', v_day::timestamp) + interval '1 month';
        else
            v_is_day := substr(p_bits, 84 + extract(day from v_day)::integer, 1) = '1';
            v_is_weekday := substr(p_bits, 128 + extract(dow from v_day)::integer, 1) = '1';
            if v_is_day and v_is_weekday
               or (v_is_day or v_is_weekday) and substr(p_bits, 136, 1) = '1' then
                -- Find the first hour, and in it the first minute.
                while v_hour < 24 loop
                    v_steps := strpos(substr(p_bits, 61 + v_hour, 24 - v_hour), '1');
                    exit when v_steps = 0;
                    if v_steps > 1 then
                        v_hour := v_hour + v_steps - 1;
                        v_minute := 0;
                    end if;
                    v_steps := strpos(substr(p_bits, 1 + v_minute, 60 - v_minute), '1');
                    if v_steps > 0 then
                        return v_day + make_interval(
                            hours => v_hour, mins => v_minute + v_steps - 1
                        );
                    end if;
                    v_hour := v_hour + 1;
                    v_minute := 0;
                end loop;
            end if;
            v_day := v_day + 1;
        end if;
        v_hour := 0;
        v_minute := 0;
    end loop;
    return null;
end;
$$;

create or replace function rowq.internal_local_to_utc(
    p_local     timestamp without time zone,
    p_time_zone text
)
returns timestamp with time zone
language plpgsql
as $$
-- purpose   Convert a local time to UTC: the first if it occurs twice, the end of the gap if it is skipped.
declare
    c_as_utc constant timestamp with time zone := p_local at time zone 'UTC';
    c_day    constant interval := interval '24 hours';
    -- By the offset of the day before, and of the day after.
    v_before timestamp with time zone;
    v_after  timestamp with time zone;
begin
    v_before := c_as_utc - (
        (c_as_utc - c_day) at time zone p_time_zone - (c_as_utc - c_day) at time zone 'UTC'
    );
    if v_before at time zone p_time_zone = p_local then
        return v_before;
    end if;
    v_after := c_as_utc - (
        (c_as_utc + c_day) at time zone p_time_zone - (c_as_utc + c_day) at time zone 'UTC'
    );
    if v_after at time zone p_time_zone = p_local then
        return v_after;
    end if;
    return rowq.internal_offset_change(
        least(v_before, v_after), greatest(v_before, v_after), p_time_zone
    );
end;
$$;

create or replace function rowq.internal_offset_change(
    p_from      timestamp with time zone,
    p_to        timestamp with time zone,
    p_time_zone text
)
returns timestamp with time zone
language plpgsql
as $$
-- purpose   Return the first change of the UTC offset after p_from, up to p_to: whole minutes; or null.
declare
    c_offset constant interval := p_from at time zone p_time_zone - p_from at time zone 'UTC';
    v_low    timestamp with time zone := p_from;
    v_high   timestamp with time zone := p_to;
    v_middle timestamp with time zone;
begin
    if v_high at time zone p_time_zone - v_high at time zone 'UTC' = c_offset then
        return null;
    end if;
    while v_high - v_low > interval '1 minute' loop
        v_middle := v_low
            + floor(extract(epoch from v_high - v_low) / 120) * interval '1 minute';
        if v_middle at time zone p_time_zone - v_middle at time zone 'UTC' = c_offset then
            v_low := v_middle;
        else
            v_high := v_middle;
        end if;
    end loop;
    return v_high;
end;
$$;

create or replace function rowq.internal_parse_cron(p_cron text)
returns text
language plpgsql
immutable
as $$
-- purpose   Parse a cron expression into 136 digits, 0 or 1.
-- errors    RQ711
declare
    v_fields   text[];
    v_weekdays text;
begin
    v_fields := regexp_split_to_array(
        btrim(
            case lower(left(p_cron, 201) collate "C")
                when '@hourly' then '0 * * * *'
                when '@daily' then '0 0 * * *'
                when '@midnight' then '0 0 * * *'
                when '@weekly' then '0 0 * * 0'
                when '@monthly' then '0 0 1 * *'
                when '@yearly' then '0 0 1 1 *'
                when '@annually' then '0 0 1 1 *'
                else left(p_cron, 201)
            end,
            E' \t'
        ),
        '[ \t]+'
    );
    if cardinality(v_fields) <> 5 or char_length(p_cron) > 200 then
        raise exception 'RQ711 invalid_argument: cron must be 5 fields (minute, hour, day, '
            'month, weekday) or a word such as @daily, got %', left(p_cron, 60)
            using errcode = 'RQ711';
    end if;
    -- Sunday is 0 and 7.
    v_weekdays := rowq.internal_parse_cron_field(
        v_fields[5], 'weekday', 0, 7, 'sun mon tue wed thu fri sat '
    );
    return rowq.internal_parse_cron_field(v_fields[1], 'minute', 0, 59)
        || rowq.internal_parse_cron_field(v_fields[2], 'hour', 0, 23)
        || rowq.internal_parse_cron_field(v_fields[3], 'day', 1, 31)
        || rowq.internal_parse_cron_field(
            v_fields[4], 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec '
        )
        || greatest(left(v_weekdays, 1), right(v_weekdays, 1))
        || substr(v_weekdays, 2, 6)
        || case when v_fields[1] like '*%' or v_fields[2] like '*%' then '0' else '1' end
        || case when v_fields[3] like '*%' or v_fields[5] like '*%' then '0' else '1' end;
end;
$$;

create or replace function rowq.internal_parse_cron_field(
    p_field text,
    p_name  text,
    p_low   integer,
    p_high  integer,
    p_words text default null
)
returns text
language plpgsql
immutable
as $$
-- purpose   Parse a cron field into 0 and 1 for each value from p_low on; p_words has their short names.
-- errors    RQ711
declare
    v_item  text;
    v_parts text[];
    v_ends  integer[];
    v_step  integer;
    v_bits  text := repeat('0', p_high - p_low + 1);
begin
    foreach v_item in array string_to_array(lower(p_field collate "C"), ',') loop
        v_parts := regexp_match(
            v_item, '^(?:(\*)|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?$'
        );
        if v_parts[1] is not null then
            v_ends := array[p_low, p_high];
        else
            select array_agg(
                       case
                           when e.word is null and v_parts[4] is null then null
                           when e.word is null then p_high
                           when e.word ~ '^[0-9]' then e.word::integer
                           when strpos(p_words, e.word) % 4 = 1
                               then p_low + strpos(p_words, e.word) / 4
                           else -1
                       end
                       order by e.position
                   )
            into v_ends
            from unnest(v_parts[2:3]) with ordinality e (word, position);
            v_ends[2] := coalesce(v_ends[2], v_ends[1]);
        end if;
        v_step := coalesce(v_parts[4], '1')::integer;
        if v_parts is null
           or v_ends[1] < p_low
           or v_ends[2] > p_high
           or v_ends[1] > v_ends[2]
           or v_step = 0 then
            raise exception 'RQ711 invalid_argument: the % field of cron must be *, a value from % '
                'to %, a range, a step or a list, got %', p_name, p_low, p_high, left(p_field, 60)
                using errcode = 'RQ711';
        end if;
        for v_value in v_ends[1] - p_low .. v_ends[2] - p_low by v_step loop
            v_bits := overlay(v_bits placing '1' from v_value + 1);
        end loop;
    end loop;
    return v_bits;
end;
$$;

create or replace function rowq.internal_require_schedule(p_queue_id integer, p_schedule_name text)
returns rowq.schedule
language plpgsql
as $$
-- purpose   Lock and return a schedule; raise an error if there is none.
-- locks     the schedule row
-- errors    RQ702 RQ711
declare
    v_schedule rowq.schedule;
begin
    if p_schedule_name is null then
        raise exception 'RQ711 invalid_argument: schedule_name is required'
            using errcode = 'RQ711';
    end if;
    select s.queue_id, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.missed,
           s.overlap, s.starts_at, s.ends_at, s.message_type, s.headers, s.priority,
           s.group_key, s.max_attempts, s.body, s.body_binary, s.is_paused, s.next_run_at,
           s.last_run_at, s.last_message_id, s.last_error, s.counts_from, s.is_running
    into v_schedule
    from rowq.schedule s
    where s.queue_id = p_queue_id
      and s.schedule_name = p_schedule_name
    for update;
    if not found then
        raise exception 'RQ702 schedule_not_found: schedule "%" does not exist',
            left(p_schedule_name, 100)
            using errcode = 'RQ702';
    end if;
    return v_schedule;
end;
$$;

create or replace function rowq.internal_enqueue_tick(
    p_schedule       rowq.schedule,
    p_queue_name     text,
    p_tick           timestamp with time zone,
    p_is_late        boolean default false,
    out o_message_id bigint,
    out o_outcome    text
)
language plpgsql
as $$
-- purpose   Enqueue the message of a locked schedule; with p_is_late it joins its group when promoted.
-- locks     as enqueue; a dedup row
-- errors    RQ701 RQ711
declare
    v_dedup_key constant text := 'schedule:' || p_schedule.schedule_name;
begin
    -- enqueue refuses such keys, so no producer can block a schedule.
    if not p_schedule.overlap then
        select d.message_id, 'duplicate' into o_message_id, o_outcome
        from rowq.dedup d
        where d.queue_id = p_schedule.queue_id
          and d.dedup_key = v_dedup_key;
        if found then
            return;
        end if;
    end if;

    select e.message_id, e.outcome into o_message_id, o_outcome
    from rowq.enqueue(
        p_queue_name    => p_queue_name,
        p_body          => p_schedule.body,
        p_body_binary   => p_schedule.body_binary,
        p_message_type  => p_schedule.message_type,
        p_headers       => rowq.internal_tick_headers(p_schedule, p_tick),
        p_priority      => p_schedule.priority,
        p_delay_seconds => case when p_is_late then 0.001 end,
        p_max_attempts  => p_schedule.max_attempts,
        p_group_key     => p_schedule.group_key
    ) e;
    if not p_schedule.overlap then
        insert into rowq.dedup (queue_id, message_id, dedup_key)
        values (p_schedule.queue_id, o_message_id, v_dedup_key);
        update rowq.message m
        set dedup_key = v_dedup_key
        where m.queue_id = p_schedule.queue_id
          and m.message_id = o_message_id;
    end if;
end;
$$;

create or replace function rowq.internal_run_schedules(p_queue_id integer, p_queue_name text)
returns void
language plpgsql
set timezone = 'UTC'
as $$
-- purpose   Run the due schedules of a queue that no other session is running.
-- locks     due schedule rows, skipping locked ones; as internal_run_due
-- differs   a caller in repeatable read or serializable runs none
declare
    v_schedule rowq.schedule;
    v_is_late  boolean := false;
    v_now      constant timestamp with time zone := clock_timestamp();
begin
    -- An old snapshot may show a tick that has run.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return;
    end if;
    for v_schedule in
        select s.queue_id, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.missed,
               s.overlap, s.starts_at, s.ends_at, s.message_type, s.headers, s.priority,
               s.group_key, s.max_attempts, s.body, s.body_binary, s.is_paused, s.next_run_at,
               s.last_run_at, s.last_message_id, s.last_error, s.counts_from, s.is_running
        from rowq.schedule s
        where s.queue_id = p_queue_id
          and s.next_run_at <= v_now
        order by s.queue_id, s.next_run_at
        for update skip locked
    loop
        -- Wait for a producer that adds a group slot only once per call, for 20 ms. After that,
        -- messages join their groups when promoted, so that no tick is missed.
        if v_schedule.group_key is null then
            perform rowq.internal_run_due(v_schedule, p_queue_name, false);
            continue;
        end if;
        v_is_late := v_is_late or not rowq.internal_run_due(v_schedule, p_queue_name, false);
        if v_is_late then
            perform rowq.internal_run_due(v_schedule, p_queue_name, true);
        end if;
    end loop;
end;
$$;

create or replace function rowq.internal_run_due(
    p_schedule   rowq.schedule,
    p_queue_name text,
    p_is_late    boolean
)
returns boolean
language plpgsql
set lock_timeout = '20ms'
as $$
-- purpose   Enqueue up to 100 due ticks of a schedule and set its next tick; return false to retry later.
-- locks     as internal_enqueue_tick, waited for 20 ms
declare
    c_now     constant timestamp with time zone := clock_timestamp();
    c_late    constant timestamp with time zone := c_now - interval '60 seconds';
    v_tick    timestamp with time zone := p_schedule.next_run_at;
    v_sent    record;
    v_last_id bigint;
    v_error   text;
    v_count   integer := 0;
begin
    if p_schedule.counts_from = 'end' then
        perform rowq.internal_run_after_end(p_schedule, p_queue_name, p_is_late);
        return true;
    end if;
    while v_tick <= c_now and v_count < 100 loop
        if v_tick < c_late and p_schedule.missed = 'skip' then
            v_tick := rowq.internal_next_tick(p_schedule, c_late);
            continue;
        end if;
        v_sent := rowq.internal_enqueue_tick(p_schedule, p_queue_name, v_tick, p_is_late);
        v_error := null;
        if v_sent.o_outcome = 'enqueued' then
            v_last_id := v_sent.o_message_id;
        else
            v_error := format('message %s of an earlier tick has not ended', v_sent.o_message_id);
        end if;
        v_tick := rowq.internal_next_tick(
            p_schedule,
            case when v_tick < c_late and p_schedule.missed = 'once' then c_now else v_tick end
        );
        v_count := v_count + 1;
    end loop;

    update rowq.schedule s
    set next_run_at     = v_tick,
        last_run_at     = case when v_last_id is null then s.last_run_at else c_now end,
        last_message_id = coalesce(v_last_id, s.last_message_id),
        last_error      = v_error
    where s.queue_id = p_schedule.queue_id
      and s.schedule_name = p_schedule.schedule_name;
    return true;
exception
    when others then
        -- The next call retries errors of locks and of the server's state, and a message id in use.
        -- Any other error would come again: record it and skip the tick.
        if sqlstate !~ '^(RQ|22|23502|23514)' then
            return false;
        end if;
        perform rowq.internal_skip_tick(p_schedule, sqlerrm);
        return true;
end;
$$;

create or replace function rowq.internal_run_after_end(
    p_schedule   rowq.schedule,
    p_queue_name text,
    p_is_late    boolean
)
returns void
language plpgsql
as $$
-- purpose   Enqueue the due tick of a schedule that counts from the end, or check for the end.
-- locks     as internal_enqueue_tick
declare
    c_now     constant timestamp with time zone := clock_timestamp();
    v_sent    record;
    v_last_id bigint;
    v_tick    timestamp with time zone;
begin
    if p_schedule.is_running and not exists (
        select
        from rowq.dedup d
        where d.queue_id = p_schedule.queue_id
          and d.dedup_key = 'schedule:' || p_schedule.schedule_name
    ) then
        v_tick := rowq.internal_next_tick(p_schedule, c_now);
        update rowq.schedule s
        set next_run_at = v_tick,
            is_running  = false
        where s.queue_id = p_schedule.queue_id
          and s.schedule_name = p_schedule.schedule_name;
        return;
    end if;

    if not p_schedule.is_running then
        -- A dead message that was reset is a duplicate: wait for it again.
        v_sent := rowq.internal_enqueue_tick(
            p_schedule, p_queue_name, p_schedule.next_run_at, p_is_late
        );
        if v_sent.o_outcome = 'enqueued' then
            v_last_id := v_sent.o_message_id;
        end if;
    end if;
    update rowq.schedule s
    set next_run_at     = c_now + interval '1 second',
        is_running      = true,
        last_run_at     = case when v_last_id is null then s.last_run_at else c_now end,
        last_message_id = coalesce(v_last_id, s.last_message_id),
        last_error      = null
    where s.queue_id = p_schedule.queue_id
      and s.schedule_name = p_schedule.schedule_name;
end;
$$;

create or replace function rowq.internal_skip_tick(p_schedule rowq.schedule, p_error text)
returns void
language plpgsql
as $$
-- purpose   Record why a schedule enqueued no message, and set its next tick.
-- locks     the schedule row
declare
    v_tick timestamp with time zone;
begin
    begin
        v_tick := rowq.internal_next_tick(p_schedule, clock_timestamp());
    exception
        -- The server has lost the time zone.
        when data_exception then
            v_tick := null;
    end;
    update rowq.schedule s
    set next_run_at = v_tick,
        last_error  = left(p_error, 2000)
    where s.queue_id = p_schedule.queue_id
      and s.schedule_name = p_schedule.schedule_name;
end;
$$;
