create or replace function rowq.internal_cut_ties(
    p_part_id     integer,
    p_ties        text[],
    p_message_ids bigint[],
    p_have_tokens boolean
)
returns void
language plpgsql
as $$
-- routine   internal_cut_ties
-- purpose   Free what these messages had, now that they have ended: a row of p_ties is a dedup key and a group key.
-- promise   P12 P22
-- locks     dedup rows; as internal_leave_groups
declare
    v_tie  text[];
    v_keys text[];
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
    end loop;
    if p_have_tokens and v_keys is not null then
        perform rowq.internal_leave_groups(p_part_id, v_keys);
    end if;
end;
$$;
