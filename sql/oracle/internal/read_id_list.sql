function internal_read_id_list(p_message_ids in clob)
return rowq_ids
is
-- routine   internal_read_id_list
-- purpose   Return the ids in a JSON array; null stays null, anything else is refused.
-- promise   P15
-- errors    RQ711
-- differs   other engines check a list in check_ids and read it where they need it
    v_ids     rowq_ids;
    v_is_good boolean;
begin
    if p_message_ids is null then
        return null;
    end if;
    v_is_good := internal_is_id_list(p_message_ids, v_ids);
    if not v_is_good then
        internal_refuse(
            'message_ids must be a JSON array of at most 10000 ids, none of them null'
        );
    end if;
    return v_ids;
end internal_read_id_list;
