create or replace function rowq.internal_cut_ties(
    p_part_id     integer,
    p_ties        text[],
    p_message_ids bigint[],
    p_have_tokens boolean,
    p_have_ended  boolean default true
)
returns void
language plpgsql
as $$
-- routine   internal_cut_ties
-- purpose   Free what these messages had, now that they have ended or died: a row of p_ties is a dedup key, a group key and the id of a message that others wait for.
-- promise   P12 P22 P26
-- locks     dedup rows; as internal_leave_groups and internal_free_successors
declare
    v_tie     text[];
    v_keys    text[];
    v_awaited bigint[];
begin
    foreach v_tie slice 1 in array p_ties loop
        if v_tie[1] is not null then
            delete from rowq.dedup d
            where d.part_id = p_part_id
              and d.dedup_key = v_tie[1]
              and d.message_id = any (p_message_ids);
        end if;
        if v_tie[2] is not null then
            v_keys := v_keys || v_tie[2];
        end if;
        if v_tie[3] is not null then
            v_awaited := v_awaited || v_tie[3]::bigint;
        end if;
    end loop;
    if p_have_tokens and v_keys is not null then
        perform rowq.internal_leave_groups(p_part_id, v_keys);
    end if;
    if p_have_ended and v_awaited is not null then
        perform rowq.internal_free_successors(
            p_part_id, array(select u.message_id from unnest(v_awaited) u (message_id) order by 1)
        );
    end if;
end;
$$;
