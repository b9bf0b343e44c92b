procedure internal_note_error(
    p_part_id    in number,
    p_messages   in t_messages,
    p_error      in clob,
    p_is_waiting in boolean
)
is
-- routine   internal_note_error
-- purpose   Store the error that messages failed with; without p_is_waiting not of those whose rows a producer holds.
-- promise   P10
-- locks     message rows, without p_is_waiting passing over locked ones
-- differs   the last error stands beside the body, and not where the message waits
    -- A CLOB counts an emoji as two, and a varchar2 counts it as one. What is stored is a CLOB,
    -- because SQL takes no varchar2 of more than 4000 bytes for many rows (ORA-01461).
    v_error constant clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    rowq_ids;
    v_held   rowq_ids;
begin
    if p_is_waiting then
        v_ids := v_wanted;
    else
        internal_lock_messages(p_part_id, v_wanted, v_ids, v_held);
    end if;
    if p_error is not null and v_error is null then
        -- An empty text is not a missing one, but Oracle takes '' as null: store an empty CLOB.
        forall i in 1 .. v_ids.count
            update rowq_message m
            set m.last_error = empty_clob()
            where m.part_id = p_part_id
              and m.message_id = v_ids(i);
        return;
    end if;
    forall i in 1 .. v_ids.count
        update rowq_message m
        set m.last_error = v_error
        where m.part_id = p_part_id
          and m.message_id = v_ids(i);
end internal_note_error;
