procedure internal_note_value(p_name in varchar2, p_value in varchar2)
is
-- routine   internal_note_value
-- purpose   Keep a value in meta under a name.
-- locks     a row of meta
-- differs   no such helper elsewhere: part of internal_note_fault and internal_drop_days
begin
    merge into rowq_meta m
    using (select p_name as name from dual) n on (m.name = n.name)
    when matched then update
        set m.value      = p_value,
            m.changed_at = sys_extract_utc(systimestamp)
    when not matched then insert (name, value, changed_at)
        values (n.name, p_value, sys_extract_utc(systimestamp));
exception
    when dup_val_on_index then
        -- Another session has just added the same row, for the same reason.
        null;
end internal_note_value;
