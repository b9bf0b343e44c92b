function result_json(
    p_part_id     in number,
    p_message_id  in number,
    p_state       in varchar2,
    p_finished_at in timestamp
)
return clob
is
-- routine   result_json
-- version   1
-- purpose   The row of get_result as JSON object, of a message that is in this state; null without one.
-- promise   P32
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own: public, so that the query of wait_for_result's result can call it
    v_object  json_object_t := json_object_t();
    v_result  clob;
    v_error   clob;
    v_is_kept pls_integer := 0;
    v_text    clob := '{"result":';
    cursor results is
        select 1 as is_kept, r.result, r.last_error
        from rowq_result r
        where r.part_id = p_part_id
          and r.message_id = p_message_id;
    cursor bodies is
        select m.last_error
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = p_message_id;
begin
    if p_state is null then
        return null;
    end if;
    if p_finished_at is not null then
        open results;
        fetch results into v_is_kept, v_result, v_error;
        close results;
        if v_is_kept = 0 and p_state = 'dead' then
            open bodies;
            fetch bodies into v_error;
            close bodies;
        end if;
    end if;

    v_object.put('message_id', p_message_id);
    v_object.put('state', p_state);
    if p_finished_at is null then
        v_object.put_null('finished_at');
    else
        v_object.put('finished_at', internal_iso_text(p_finished_at));
    end if;
    if v_error is null then
        v_object.put_null('last_error');
    elsif dbms_lob.getlength(v_error) = 0 then
        -- An empty text is not a missing one, so it is put as "". Before 21c only an array or an
        -- object can be parsed, and put takes '' as null.
        v_object.put('last_error', json_array_t.parse('[""]').get(0));
    else
        v_object.put('last_error', v_error);
    end if;
    -- The result is added as text, because a JSON object would round its numbers.
    dbms_lob.append(v_text, coalesce(v_result, to_clob('null')));
    dbms_lob.append(v_text, ',');
    dbms_lob.append(v_text, substr(v_object.to_clob(), 2));
    return v_text;
end result_json;
