create or replace function rowq.internal_free_keys(p_part_id integer, p_message_ids bigint[])
returns void
language plpgsql
as $$
-- routine   internal_free_keys
-- version   1
-- purpose   Free the dedup keys of messages that are finished or dead.
-- promise   P12
-- locks     dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
declare
    v_keys text[];
begin
    select array_agg(m.dedup_key order by m.dedup_key) into v_keys
    from rowq.message m
    where m.part_id = p_part_id
      and m.message_id = any (p_message_ids)
      and m.dedup_key is not null;

    if v_keys is not null then
        delete from rowq.dedup d
        where d.part_id = p_part_id
          and d.dedup_key = any (v_keys)
          and d.message_id = any (p_message_ids);
    end if;
end;
$$;
