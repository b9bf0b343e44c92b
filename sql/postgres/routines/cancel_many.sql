create or replace function rowq.cancel_many(
    p_queue_name       text,
    p_message_type     text default null,
    p_group_key        text default null,
    p_header_name      text default null,
    p_header_value     text default null,
    p_enqueued_before  timestamp with time zone default null,
    p_after_message_id bigint default 0,
    p_max_messages     integer default 1000
)
returns table (cancelled integer, after_message_id bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   cancel_many
-- version   1
-- purpose   Cancel messages that match all given filters and that no worker holds.
-- promise   P15
-- locks     as cancel
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is searched for among all ready messages of the
--           queue
#variable_conflict use_column
declare
    v_queue         rowq.queue;
    v_error         text;
    v_seen          record;
    v_claims_from   bigint;
    v_finished_from bigint;
begin
    v_error := case
        when p_max_messages is null or p_max_messages not between 1 and 10000
            then 'max_messages must be between 1 and 10000, got '
                || coalesce(p_max_messages::text, 'null')
        when (p_header_name is null) <> (p_header_value is null)
            then 'header_name and header_value must be set together'
        when char_length(p_header_name) not between 1 and 200
          or p_header_name ~ '[^\x20-\x7e]|["\\]|^-'
            then 'header_name must be 1 to 200 printable ASCII characters, no ", \, leading -'
        when num_nonnulls(p_message_type, p_group_key, p_header_name, p_enqueued_before) = 0
            then 'a filter is required: message_type, group_key, header_name, enqueued_before'
    end;
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    select array_agg(h.message_id) filter (where h.is_wanted) ids, count(*) scanned,
           max(h.message_id) last_id
    into v_seen
    from (
        select m.message_id,
               (p_message_type is null or m.message_type = p_message_type)
               and (p_group_key is null or m.group_key = p_group_key)
               and (p_enqueued_before is null or m.enqueued_at < p_enqueued_before)
               and (
                   p_header_name is null
                   or m.headers ->> p_header_name = p_header_value
                   and case jsonb_typeof(m.headers -> p_header_name)
                       when 'number' then p_header_value ~ '^-?[0-9]+$'
                       else jsonb_typeof(m.headers -> p_header_name) in ('string', 'boolean')
                   end
               ) as is_wanted
        from rowq.message m
        where m.queue_id = v_queue.queue_id
          and m.message_id > coalesce(p_after_message_id, 0)
        order by m.queue_id, m.message_id
        limit p_max_messages
    ) h;

    -- Skip leased messages, and finished ones that wait for the archiver: they would be searched
    -- for among all ready messages.
    if v_seen.ids is not null then
        v_claims_from := rowq.internal_read_safe_floor(v_queue.queue_id, -1::smallint /* claim */);
        v_finished_from := rowq.internal_read_safe_floor(
            v_queue.queue_id, -3::smallint /* finished */
        );
        v_seen.ids := array(
            select u.message_id
            from unnest(v_seen.ids) u (message_id)
            except
            select x.message_id
            from rowq.claim c
            cross join lateral unnest(c.message_ids) x (message_id)
            where c.queue_id = v_queue.queue_id
              and c.claim_id >= v_claims_from
            except
            select x.message_id
            from rowq.finished f
            cross join lateral unnest(f.message_ids) x (message_id)
            where f.queue_id = v_queue.queue_id
              and f.finish_id >= v_finished_from
        );
    end if;

    cancelled := 0;
    if v_seen.ids <> '{}' then
        cancelled := cardinality(
            rowq.internal_cancel_unleased(v_queue.queue_id, v_queue.archive_days, v_seen.ids)
        );
    end if;
    if v_seen.scanned = p_max_messages then
        after_message_id := v_seen.last_id;
    end if;
    return next;
end;
$$;
