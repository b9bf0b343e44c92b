procedure internal_note_fault(p_part_id in number, p_fault in varchar2)
is
-- routine   internal_note_fault
-- purpose   Remember the last error in maintain of a queue, for health; null forgets it.
-- promise   P19
-- locks     a row of meta
-- differs   no such helper elsewhere: other engines warn
    v_name constant rowq_meta.name%type := 'maintain_fault.' || internal_number_text(p_part_id);
begin
    if p_fault is null then
        delete from rowq_meta m
        where m.name = v_name;
        return;
    end if;
    internal_note_value(v_name, p_fault);
end internal_note_fault;
