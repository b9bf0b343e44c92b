create or replace function rowq.internal_store_plain(
    p_part_id    integer,
    p_messages   jsonb,
    p_max_length integer,
    p_now        timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[]
)
language plpgsql
as $$
-- routine   internal_store_plain
-- purpose   Store a batch whose messages have short bodies, good priorities and nothing else; return nulls for another one.
-- promise   P01 P05 P11
-- locks     new rows only
-- differs   only here: most batches are such, and need no common table of their messages
begin
    -- A value of a table's column may be compressed, and would be unpacked for each look into it.
    p_messages := p_messages #> '{}';

    if p_messages is null
       or jsonb_typeof(p_messages) <> 'array'
       or jsonb_array_length(p_messages) > 10000
       or exists (
        select 1
        from jsonb_array_elements(p_messages) e (message)
        where case
                  when jsonb_typeof(e.message) <> 'object' then true
                  when pg_column_size(e.message) > p_max_length then true
                  -- A body that is no JSON string may be much longer as a text: 1e9999 has ten
                  -- thousand digits.
                  when jsonb_typeof(e.message -> 'body') <> 'string'
                       and octet_length(e.message ->> 'body') > p_max_length then true
                  when e.message - '{body,priority}'::text[] <> '{}' then true
                  when jsonb_typeof(e.message -> 'priority') = 'number'
                      then (e.message ->> 'priority') not in (
                          '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'
                      )
                  else jsonb_typeof(e.message -> 'priority') <> 'null'
              end
    ) then
        return;
    end if;

    -- Arrays of numbers and lanes cost less than rows that one insert returns to another.
    select array_agg(nextval('rowq.message_seq')),
           array_agg((coalesce((e.message ->> 'priority')::integer, 5) * 2 + 1)::smallint)
    into o_message_ids, o_lanes
    from jsonb_array_elements(p_messages) e (message);

    insert into rowq.message (part_id, message_id, enqueued_at, body)
    select p_part_id, n.message_id, p_now, n.message ->> 'body'
    from rows from (jsonb_array_elements(p_messages), unnest(o_message_ids)) n (
        message, message_id
    );

    insert into rowq.ready (part_id, lane, seq, message_id)
    select p_part_id, n.lane, n.message_id, n.message_id
    from unnest(o_message_ids, o_lanes) n (message_id, lane);
end;
$$;
