function messages_json(
    p_part_id     in number,
    p_claim_id    in number,
    p_lease_until in timestamp
)
return clob
is
-- routine   messages_json
-- version   1
-- purpose   What dequeue_fast returns for a claim, as a JSON array; null where there is no claim.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own: public, so that the query of dequeue_wait's result can call it
    -- The array is made when the result is fetched, because a temporary LOB of a variable ends with
    -- the block that has the variable, and what SQL gets from a function lives until it is fetched.
    v_object json_object_t;
    v_text   clob := '[';

    procedure put_text(p_key in varchar2, p_text in clob)
    is
    begin
        if p_text is null then
            v_object.put_null(p_key);
        elsif dbms_lob.getlength(p_text) = 0 then
            -- An empty text is not a missing one, so it is put as "". Before 21c only an array or
            -- an object can be parsed, and put takes '' as null.
            v_object.put(p_key, json_array_t.parse('[""]').get(0));
        else
            v_object.put(p_key, p_text);
        end if;
    end put_text;
begin
    if p_claim_id is null then
        return null;
    end if;
    for each_message in (
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               l.message_id, l.attempt, m.message_type, m.headers, m.body, m.body_binary,
               m.enqueued_at, m.last_error
        from rowq_leased l
        join rowq_message m
          on m.part_id = l.part_id
         and m.message_id = l.message_id
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
        order by l.part_id, l.claim_id, l.place
    ) loop
        v_object := json_object_t();
        v_object.put('claim_id', p_claim_id);
        v_object.put('message_id', each_message.message_id);
        v_object.put('attempt', each_message.attempt);
        put_text('message_type', each_message.message_type);
        put_text('body', each_message.body);
        put_text('body_binary', internal_to_base64(each_message.body_binary));
        put_text('enqueued_at', internal_iso_text(each_message.enqueued_at));
        put_text('lease_until', internal_iso_text(p_lease_until));
        put_text('last_error', each_message.last_error);

        -- Headers are added as text, because a JSON object would round their numbers.
        if dbms_lob.getlength(v_text) > 1 then
            dbms_lob.append(v_text, ',');
        end if;
        dbms_lob.append(v_text, '{"headers":');
        dbms_lob.append(v_text, coalesce(each_message.headers, to_clob('null')));
        dbms_lob.append(v_text, ',');
        dbms_lob.append(v_text, substr(v_object.to_clob(), 2));
    end loop;
    dbms_lob.append(v_text, ']');
    return v_text;
end messages_json;
