-- Arguments: what a call may pass.
--
-- A routine checks all of its arguments before it locks or writes anything, so a refused call
-- changes nothing. A *check* raises RQ711; an *error* helper returns what is wrong, or null, so
-- that a batch can name the message at fault. Bodies are compared by bytes first: counting bytes
-- costs nothing, and no text has more characters than bytes.
--
--   create_queue, alter_queue -> check_settings -> check_name, check_range
--   check_schedule -> check_name
--   retry_later, extend_lease, create_schedule, ... -> check_range
--   enqueue, check_schedule -> body_error
--   enqueue, publish, refuse_predecessors, ... -> message_error -> is_id_list
--   cancel, refuse_predecessors, lock_dead, ... -> is_id_list
--   enqueue_batch, publish_batch, store_unkeyed -> parse_messages -> message_error, body_error,
--       refuse_bad_value
--   parse_predecessors -> refuse_bad_value
--   maintain, reap, promote, ... -> check_batch_size
--
-- No table.

create or replace function rowq.internal_check_settings(
    p_queue_name           text,
    p_lease_seconds        integer,
    p_max_attempts         integer,
    p_backoff_base_seconds double precision,
    p_backoff_factor       double precision,
    p_backoff_cap_seconds  double precision,
    p_backoff_jitter       double precision,
    p_archive_days         integer,
    p_max_body_length      integer,
    p_group_limit          integer,
    p_group_after_dead     text,
    p_group_pause_seconds  double precision,
    p_max_leased           integer,
    p_rate_limit           integer,
    p_rate_seconds         double precision,
    p_result_seconds       double precision,
    p_history_days         integer
)
returns void
language plpgsql
as $$
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- errors    RQ711
begin
    perform rowq.internal_check_name('queue_name', p_queue_name);
    perform rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    perform rowq.internal_check_range('max_attempts', p_max_attempts, 1, 10000);
    perform rowq.internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    perform rowq.internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    perform rowq.internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    perform rowq.internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    perform rowq.internal_check_range('archive_days', p_archive_days, 0, 36500);
    perform rowq.internal_check_range('max_body_length', p_max_body_length, 1, 33554432);
    perform rowq.internal_check_range('group_limit', p_group_limit, 1, 100);
    perform rowq.internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    if p_group_after_dead not in ('continue', 'hold') then
        raise exception
            'RQ711 invalid_argument: group_after_dead must be continue or hold, got %',
            left(p_group_after_dead, 100)
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('max_leased', p_max_leased, 0, 100000);
    perform rowq.internal_check_range('rate_limit', p_rate_limit, 0, 100000);
    perform rowq.internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    perform rowq.internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    perform rowq.internal_check_range('history_days', p_history_days, 0, 36500);
end;
$$;

create or replace function rowq.internal_check_name(p_name text, p_value text)
returns void
language plpgsql
as $$
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- errors    RQ711
begin
    if p_value is null
       or char_length(p_value) not between 1 and 100
       or p_value ~ '[[:cntrl:]]' then
        raise exception
            'RQ711 invalid_argument: % must be 1 to 100 characters, none of them control', p_name
            using errcode = 'RQ711';
    end if;
end;
$$;

create or replace function rowq.internal_check_range(
    p_name  text,
    p_value double precision,
    p_low   double precision,
    p_high  double precision
)
returns void
language plpgsql
as $$
-- purpose   Refuse a number outside its range; null passes.
-- errors    RQ711
begin
    if not p_value between p_low and p_high then
        raise exception 'RQ711 invalid_argument: % must be between % and %, got %',
            p_name, p_low, p_high, p_value
            using errcode = 'RQ711';
    end if;
end;
$$;

create or replace function rowq.internal_body_error(
    p_body        text,
    p_body_binary bytea,
    p_max_length  integer
)
returns text
language plpgsql
as $$
-- purpose   Return what is wrong with the length of a body; null means nothing.
declare
    v_length constant integer := greatest(char_length(p_body), octet_length(p_body_binary));
begin
    if v_length > p_max_length then
        return format(
            'body is %s long, and the queue takes %s: max_body_length', v_length, p_max_length
        );
    end if;
    return null;
end;
$$;

create or replace function rowq.internal_message_error(
    p_body                text,
    p_body_binary         bytea,
    p_message_type        text,
    p_headers             jsonb,
    p_priority            integer,
    p_delay_seconds       double precision,
    p_run_at              timestamp with time zone,
    p_dedup_key           text,
    p_max_attempts        integer,
    p_group_key           text,
    p_predecessor_ids     bigint[],
    p_on_predecessor_dead text,
    p_expire_seconds      double precision
)
returns text
language plpgsql
as $$
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
begin
    return case
        when p_priority is null or p_priority not between 0 and 9
            then 'priority must be between 0 and 9, got ' || coalesce(p_priority::text, 'null')
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary exclude each other'
        when char_length(p_message_type) > 200
            then 'message_type is longer than 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at exclude each other'
        when p_delay_seconds not between 0 and 315360000
            then format('delay_seconds must be between 0 and 315360000, got %s', p_delay_seconds)
        when p_run_at > clock_timestamp() + interval '3650 days' or not isfinite(p_run_at)
            then 'run_at must be a moment within the next ten years'
        when char_length(p_dedup_key) not between 1 and 200
            then 'dedup_key must be 1 to 200 characters'
        when starts_with(p_dedup_key, 'schedule:')
            then 'dedup_key must not begin with schedule:, which is for schedules'
        when char_length(p_group_key) not between 1 and 200
            then 'group_key must be 1 to 200 characters'
        when not rowq.internal_is_id_list(p_predecessor_ids)
            then 'predecessor_ids must be a flat list of at most 10000 ids, no null'
        when p_on_predecessor_dead not in ('hold', 'continue', 'fail')
            then 'on_predecessor_dead must be hold, continue or fail, got '
                || left(p_on_predecessor_dead, 100)
        when p_max_attempts not between 1 and 10000
            then format('max_attempts must be between 1 and 10000, got %s', p_max_attempts)
        when p_expire_seconds not between 0.001 and 315360000
            then format('expire_seconds must be between 0.001 and 315360000, got %s',
                        p_expire_seconds)
        when p_headers is not null
            then rowq.internal_json_error(
                'headers', p_headers, 'object', 'strict $.**{20}', 65536
            )
    end;
end;
$$;

create or replace function rowq.internal_is_id_list(p_message_ids bigint[])
returns boolean
language plpgsql
as $$
-- purpose   Return whether a list of messages is flat, not too long and without null; a null list passes.
begin
    return p_message_ids is null
        or cardinality(p_message_ids) <= 10000
        and coalesce(array_ndims(p_message_ids), 1) = 1
        and array_position(p_message_ids, null) is null;
end;
$$;

create or replace function rowq.internal_parse_messages(
    p_messages   jsonb,
    p_max_length integer
)
returns table (
    place          integer,
    body           text,
    body_binary    bytea,
    message_type   text,
    headers        jsonb,
    priority       integer,
    delay_seconds  double precision,
    run_at         timestamp with time zone,
    dedup_key      text,
    max_attempts   integer,
    group_key      text,
    expire_seconds double precision
)
language plpgsql
as $$
-- purpose   Read and check the messages of enqueue_batch.
-- errors    RQ711
#variable_conflict use_column
declare
    v_place integer;
    v_error text;
begin
    if p_messages is null
       or jsonb_typeof(p_messages) <> 'array'
       or jsonb_array_length(p_messages) > 10000 then
        raise exception
            'RQ711 invalid_argument: messages must be a JSON array of at most 10000 objects'
            using errcode = 'RQ711';
    end if;

    select e.place into v_place
    from jsonb_array_elements(p_messages) with ordinality e (message, place)
    where jsonb_typeof(e.message) <> 'object'
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: a message must be a JSON object (message %)',
            v_place
            using errcode = 'RQ711';
    end if;

    select e.place, format(
               case when t.wanted is null then 'unknown key %I' else '%I must be a %s' end,
               left(k.key, 100), t.wanted
           )
    into v_place, v_error
    from jsonb_array_elements(p_messages) with ordinality e (message, place)
    cross join lateral jsonb_each(e.message) k (key, value)
    left join (
        values
            ('body', 'value'), ('body_base64', 'string'), ('message_type', 'string'),
            ('headers', 'object'), ('priority', 'number'), ('delay_seconds', 'number'),
            ('run_at', 'string'), ('dedup_key', 'string'), ('max_attempts', 'number'),
            ('group_key', 'string'), ('predecessor_ids', 'array'),
            ('predecessor_positions', 'array'), ('on_predecessor_dead', 'string'),
            ('expire_seconds', 'number')
    ) t (key, wanted) on t.key = k.key
    where t.wanted is null
       or t.wanted not in ('value', jsonb_typeof(k.value)) and k.value <> 'null'
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: % (message %)', v_error, v_place
            using errcode = 'RQ711';
    end if;

    begin
        for place, body, body_binary, message_type, headers, priority, delay_seconds, run_at,
            dedup_key, max_attempts, group_key, expire_seconds in
            select e.place::integer,
                   case when e.body <> 'null' then e.body #>> '{}' end,
                   decode(e.body_base64, 'base64'),
                   e.message_type,
                   nullif(e.headers, 'null'),
                   coalesce(e.priority, 5),
                   e.delay_seconds,
                   case when e.run_at is not null then rowq.internal_parse_timestamp(e.run_at) end,
                   e.dedup_key,
                   e.max_attempts,
                   e.group_key,
                   e.expire_seconds
            from rows from (
                jsonb_to_recordset(p_messages) as (
                    body           jsonb,
                    body_base64    text,
                    message_type   text,
                    headers        jsonb,
                    priority       integer,
                    delay_seconds  double precision,
                    run_at         text,
                    dedup_key      text,
                    max_attempts   integer,
                    group_key      text,
                    expire_seconds double precision
                )
            ) with ordinality e (
                body, body_base64, message_type, headers, priority, delay_seconds, run_at,
                dedup_key, max_attempts, group_key, expire_seconds, place
            )
        loop
            -- A short text with a good priority and a good delay has nothing else to check.
            if priority not between 0 and 9
               or delay_seconds not between 0 and 315360000
               or octet_length(body) > p_max_length
               or num_nonnulls(
                   body_binary, message_type, headers, run_at, dedup_key, max_attempts, group_key,
                   expire_seconds
               ) > 0 then
                v_error := coalesce(
                    rowq.internal_message_error(
                        body, body_binary, message_type, headers, priority, delay_seconds, run_at,
                        dedup_key, max_attempts, group_key, null, null, expire_seconds
                    ),
                    rowq.internal_body_error(body, body_binary, p_max_length)
                );
                if v_error is not null then
                    raise exception 'RQ711 invalid_argument: % (message %)', v_error, place
                        using errcode = 'RQ711';
                end if;
            end if;
            return next;
        end loop;
    exception
        when data_exception then
            perform rowq.internal_refuse_bad_value(e.message, e.place::integer)
            from jsonb_array_elements(p_messages) with ordinality e (message, place);
            raise;
    end;
end;
$$;

create or replace function rowq.internal_refuse_bad_value(p_message jsonb, p_position integer)
returns void
language plpgsql
as $$
-- purpose   Refuse a message of enqueue_batch with a value that cannot be read, by key and position.
-- errors    RQ711
declare
    v_key text;
begin
    foreach v_key in array array[
        'priority', 'max_attempts', 'delay_seconds', 'run_at', 'body_base64', 'predecessor_ids',
        'predecessor_positions'
    ] loop
        begin
            case v_key
                when 'delay_seconds' then
                    perform (p_message ->> v_key)::double precision;
                when 'run_at' then
                    perform rowq.internal_parse_timestamp(p_message ->> v_key);
                when 'body_base64' then
                    perform decode(p_message ->> v_key, 'base64');
                when 'predecessor_ids', 'predecessor_positions' then
                    perform max(e.id::bigint)
                    from jsonb_array_elements_text(nullif(p_message -> v_key, 'null')) e (id);
                else
                    perform (p_message ->> v_key)::integer;
            end case;
        exception
            when data_exception then
                raise exception 'RQ711 invalid_argument: %: % (message %)',
                    v_key, sqlerrm, p_position
                    using errcode = 'RQ711';
        end;
    end loop;
end;
$$;

create or replace function rowq.internal_check_batch_size(p_batch_size integer)
returns void
language plpgsql
as $$
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000.
-- errors    RQ711
begin
    if p_batch_size is null or p_batch_size not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: batch_size must be between 1 and 10000, got %',
            p_batch_size
            using errcode = 'RQ711';
    end if;
end;
$$;
