function ids(p_ids in rowq_ids)
return clob
is
-- routine   ids
-- version   1
-- purpose   Return a list of ids as the JSON array that routines take, for callers in PL/SQL.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only here: callers of other engines have lists or write JSON
    v_array json_array_t := json_array_t();
begin
    if p_ids is null then
        return null;
    end if;
    for i in 1 .. p_ids.count loop
        v_array.append(p_ids(i));
    end loop;
    return v_array.to_clob();
end ids;
