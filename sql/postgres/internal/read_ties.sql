create or replace function rowq.internal_read_ties(p_part_id integer, p_message_ids bigint[])
returns text[]
language plpgsql
as $$
-- routine   internal_read_ties
-- purpose   Return the ties of messages as internal_cut_ties takes them; null where none has any.
declare
    v_ties text[];
begin
    select array_agg(
               array[
                   m.dedup_key, m.group_key,
                   case when m.has_successors then u.message_id::text end
               ]
               order by m.dedup_key
           )
    into v_ties
    from unnest(p_message_ids) u (message_id)
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each message, whatever the planner thinks of
        -- the sizes.
        select x.dedup_key, x.group_key, x.has_successors
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    where m.dedup_key is not null
       or m.group_key is not null
       or m.has_successors;
    return v_ties;
end;
$$;
