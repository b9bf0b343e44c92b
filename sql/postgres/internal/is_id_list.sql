create or replace function rowq.internal_is_id_list(p_message_ids bigint[])
returns boolean
language plpgsql
as $$
-- routine   internal_is_id_list
-- version   1
-- purpose   Whether a list of messages is flat, not too long and without null; a null list passes.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
begin
    return p_message_ids is null
        or cardinality(p_message_ids) <= 10000
        and coalesce(array_ndims(p_message_ids), 1) = 1
        and array_position(p_message_ids, null) is null;
end;
$$;
