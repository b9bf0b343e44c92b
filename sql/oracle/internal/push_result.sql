procedure internal_push_result(
    p_part_id  in number,
    p_messages in t_messages,
    p_state    in varchar2,
    p_error    in clob,
    p_results  in t_clobs
)
is
-- routine   internal_push_result
-- purpose   Keep how messages have ended; p_results has those of the messages, null for one without, by their places in p_messages; it is empty where no message has one.
-- promise   P32
-- locks     result rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_error clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
begin
    if p_error is not null and v_error is null then
        v_error := empty_clob();
    end if;
    if p_results.count > 0 then
        -- What was completed has no row yet. A merge is not for LOBs of many rows.
        forall i in 1 .. p_messages.count
            insert into rowq_result (part_id, message_id, finished_at, state, result)
            values (p_part_id, p_messages(i).message_id, v_now, p_state, p_results(i));
        return;
    end if;

    -- A dead message that is cancelled or purged has its row already, and keeps its error.
    forall i in 1 .. p_messages.count
        merge into rowq_result r
        using (
            select p_part_id as part_id, p_messages(i).message_id as message_id
            from dual
        ) n on (r.part_id = n.part_id and r.message_id = n.message_id)
        when matched then update
            set r.finished_at = v_now,
                r.state       = p_state
        when not matched then insert (
            part_id, message_id, finished_at, state, last_error
        )
        values (n.part_id, n.message_id, v_now, p_state, v_error);
end internal_push_result;
