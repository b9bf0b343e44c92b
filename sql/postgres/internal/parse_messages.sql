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
-- routine   internal_parse_messages
-- purpose   Read and check the messages of enqueue_batch.
-- promise   P15
-- errors    RQ711
#variable_conflict use_column
declare
    v_place integer;
    v_fault text;
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
    into v_place, v_fault
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
        raise exception 'RQ711 invalid_argument: % (message %)', v_fault, v_place
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
                   case when e.run_at is not null then rowq.internal_parse_moment(e.run_at) end,
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
                v_fault := coalesce(
                    rowq.internal_message_fault(
                        body, body_binary, message_type, headers, priority, delay_seconds, run_at,
                        dedup_key, max_attempts, group_key, null, null, expire_seconds
                    ),
                    rowq.internal_body_fault(body, body_binary, p_max_length)
                );
                if v_fault is not null then
                    raise exception 'RQ711 invalid_argument: % (message %)', v_fault, place
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
