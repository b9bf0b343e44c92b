procedure internal_note_fault(p_part_id in number, p_fault in varchar2)
is
-- routine   internal_note_fault
-- purpose   Remember the last fault of a queue's archive or history for health; null forgets it.
-- promise   P19
-- locks     a row of meta
-- differs   no such helper elsewhere: other engines warn
    v_name constant rowq_meta.name%type := 'archive_fault.' || internal_number_text(p_part_id);
begin
    if p_fault is null then
        delete from rowq_meta m
        where m.name = v_name;
        return;
    end if;
    merge into rowq_meta m
    using (select v_name as name from dual) n on (m.name = n.name)
    when matched then update
        set m.value      = p_fault,
            m.changed_at = sys_extract_utc(systimestamp)
    when not matched then insert (name, value, changed_at)
        values (n.name, p_fault, sys_extract_utc(systimestamp));
end internal_note_fault;
