create or replace function rowq.internal_health_sequences(
    p_message_id bigint,
    p_claim_id   bigint,
    p_part_id    integer
)
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- routine   internal_health_sequences
-- purpose   Return the check of sequences that are behind the newest numbers stored.
-- promise   P08
-- differs   this engine's own
#variable_conflict use_column
declare
    -- A worker may hold a claim that is newer than any which was restored or replicated.
    c_margin constant integer := 1000000;
begin
    return query
    select 'sequence_behind', null::text, coalesce(max(b.behind), 0)::double precision,
           1::double precision, 1::double precision,
           coalesce(
               'ids that are in use would be given out again: '
               || string_agg(
                   format('select setval(%L, %s);', b.name, b.newest + b.margin), ' '
                   order by b.name
               ),
               'every sequence is ahead of the ids that are stored'
           )
    from (
        select s.name, s.newest, s.margin, s.newest - s.last as behind
        from (
            select 'rowq.message_seq' as name, p_message_id as newest, c_margin as margin,
                   m.last_value - (not m.is_called)::integer as last
            from rowq.message_seq m
            union all
            select 'rowq.claim_seq', p_claim_id, c_margin,
                   c.last_value - (not c.is_called)::integer
            from rowq.claim_seq c
            union all
            select 'rowq.queue_part_id_seq', p_part_id, 0,
                   q.last_value - (not q.is_called)::integer
            from rowq.queue_part_id_seq q
        ) s
        where s.newest > s.last
    ) b;
end;
$$;
