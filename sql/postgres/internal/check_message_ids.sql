create or replace function rowq.internal_check_message_ids(p_message_ids bigint[])
returns void
language plpgsql
as $$
-- routine   internal_check_message_ids
-- version   1
-- purpose   Refuse a list of messages that is too long, nested or has a null in it; a null list passes.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
begin
    if cardinality(p_message_ids) > 10000
       or array_ndims(p_message_ids) > 1
       or array_position(p_message_ids, null) is not null then
        raise exception
            'RQ711 invalid_argument: message_ids must be a flat list of at most 10000 ids, no null'
            using errcode = 'RQ711';
    end if;
end;
$$;
