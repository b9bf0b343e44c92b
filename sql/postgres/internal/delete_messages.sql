create or replace function rowq.internal_delete_messages(
    p_part_id     integer,
    p_message_ids bigint[],
    p_are_locked  boolean default false,
    out o_ties text[],
    out o_held bigint[]
)
language plpgsql
as $$
-- routine   internal_delete_messages
-- purpose   Delete messages, but for those whose rows another transaction has locked: o_held. o_ties are the ties of the deleted ones as internal_cut_ties takes them; null where none has any. p_are_locked says that the caller has locked the rows.
-- promise   P04 P13
-- locks     message rows, tried only
declare
    c_close_together constant integer := 10000;
    v_low        bigint;
    v_high       bigint;
    v_count      integer := 0;
    v_message_id bigint;
    v_tie        text[];
begin
    if cardinality(p_message_ids) > 1 then
        select min(u.message_id), max(u.message_id) into v_low, v_high
        from unnest(p_message_ids) u (message_id);
    end if;

    -- The bounds keep the delete to its own range of the key. A plan that was made while the table
    -- was small would make "= any" alone a filter over all messages of the queue, and the session
    -- would keep that plan. A row that no transaction has ever locked has xmax 0, and deleting it
    -- waits for nobody; any other row is left to the loop.
    if v_high - v_low < c_close_together then
        with gone as (
            delete from rowq.message m
            where m.part_id = p_part_id
              and m.message_id between v_low and v_high
              and m.message_id = any (p_message_ids)
              and (m.xmax = 0 or p_are_locked)
            returning case
                when m.dedup_key is not null or m.group_key is not null or m.has_successors
                    then array[
                        m.dedup_key, m.group_key,
                        case when m.has_successors then m.message_id::text end
                    ]
            end as tie
        )
        select array_agg(g.tie order by g.tie[1]) filter (where g.tie is not null), count(*)
        into o_ties, v_count
        from gone g;
        if v_count = cardinality(p_message_ids) then
            return;
        end if;
    end if;

    for v_message_id in
        select u.message_id
        from unnest(p_message_ids) u (message_id)
        cross join lateral (
            -- "offset 0" keeps this a lookup by key for each message.
            select
            from rowq.message x
            where x.part_id = p_part_id
              and x.message_id = u.message_id
            offset 0
        ) m
    loop
        v_tie := null;
        delete from rowq.message m
        where m.part_id = p_part_id
          and m.ctid = (
              select x.ctid
              from rowq.message x
              where x.part_id = p_part_id
                and x.message_id = v_message_id
              for update skip locked
          )
        returning case
            when m.dedup_key is not null or m.group_key is not null or m.has_successors
                then array[
                    m.dedup_key, m.group_key,
                    case when m.has_successors then m.message_id::text end
                ]
        end
        into v_tie;
        if v_tie is not null then
            o_ties := o_ties || array[v_tie];
        elsif not found then
            o_held := o_held || v_message_id;
        end if;
    end loop;
end;
$$;
