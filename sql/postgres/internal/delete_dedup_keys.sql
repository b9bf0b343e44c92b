create or replace function rowq.internal_delete_dedup_keys(
    p_part_id     integer,
    p_keys        text[],
    p_message_ids bigint[]
)
returns void
language plpgsql
as $$
-- routine   internal_delete_dedup_keys
-- version   1
-- purpose   Free dedup keys, as far as these messages hold them.
-- promise   P12
-- locks     dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
declare
    v_key text;
begin
    foreach v_key in array p_keys loop
        delete from rowq.dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_key
          and d.message_id = any (p_message_ids);
    end loop;
end;
$$;
