procedure internal_note_fault(p_fault in varchar2)
is
-- routine   internal_note_fault
-- version   1
-- purpose   Remember the last fault of the archive for health.
-- promise   P19
-- locks     a row of meta
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines warn
begin
    merge into rowq_meta m
    using (select 'archive_fault' as name from dual) n on (m.name = n.name)
    when matched then update
        set m.value      = p_fault,
            m.changed_at = sys_extract_utc(systimestamp)
    when not matched then insert (name, value, changed_at)
        values (n.name, p_fault, sys_extract_utc(systimestamp));
end internal_note_fault;
