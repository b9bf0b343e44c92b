create or replace function rowq.internal_delete_messages(
    p_part_id     integer,
    p_message_ids bigint[]
)
returns text[]
language plpgsql
as $$
-- routine   internal_delete_messages
-- purpose   Delete messages; return their ties as internal_cut_ties takes them; null where none has any.
-- promise   P04 P13
-- locks     message rows
declare
    c_close_together constant integer := 10000;
    v_low        bigint;
    v_high       bigint;
    v_message_id bigint;
    v_tie        text[];
    v_ties       text[];
begin
    if cardinality(p_message_ids) > 1 then
        select min(u.message_id), max(u.message_id) into v_low, v_high
        from unnest(p_message_ids) u (message_id);
    end if;

    -- The bounds keep the delete to its own range of the key. A plan that was made while the table
    -- was small would make "= any" alone a filter over all messages of the queue, and the session
    -- would keep that plan.
    if v_high - v_low < c_close_together then
        with gone as (
            delete from rowq.message m
            where m.part_id = p_part_id
              and m.message_id between v_low and v_high
              and m.message_id = any (p_message_ids)
            returning case
                when m.dedup_key is not null or m.group_key is not null or m.has_successors
                    then array[
                        m.dedup_key, m.group_key,
                        case when m.has_successors then m.message_id::text end
                    ]
            end as tie
        )
        select array_agg(g.tie order by g.tie[1]) into v_ties
        from gone g
        where g.tie is not null;
        return v_ties;
    end if;

    foreach v_message_id in array coalesce(p_message_ids, '{}') loop
        delete from rowq.message m
        where m.part_id = p_part_id
          and m.message_id = v_message_id
        returning case
            when m.dedup_key is not null or m.group_key is not null or m.has_successors
                then array[
                    m.dedup_key, m.group_key,
                    case when m.has_successors then m.message_id::text end
                ]
        end
        into v_tie;
        if v_tie is not null then
            v_ties := v_ties || array[v_tie];
        end if;
    end loop;
    return v_ties;
end;
$$;
