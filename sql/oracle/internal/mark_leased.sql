procedure internal_mark_leased(p_part_id in number, p_lines in out nocopy rowq_lines)
is
-- routine   internal_mark_leased
-- purpose   Mark as leased what was not found but still has a body: a worker holds it.
-- differs   no such helper elsewhere: part of cancel
    v_asked  rowq_ids := rowq_ids();
    v_leased rowq_ids;
begin
    for i in 1 .. p_lines.count loop
        if p_lines(i).outcome = 'not_found' then
            v_asked.extend;
            v_asked(v_asked.last) := p_lines(i).message_id;
        end if;
    end loop;
    if v_asked.count = 0 then
        return;
    end if;

    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_leased
    from table(v_asked) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where not exists (
        select null
        from rowq_finished f
        where f.part_id = p_part_id
          and f.message_id = m.message_id
    );
    internal_mark_lines(p_lines, v_leased, 'leased');
end internal_mark_leased;
