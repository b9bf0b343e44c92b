procedure internal_mark_lines(
    p_lines   in out nocopy rowq_lines,
    p_ids     in rowq_ids,
    p_outcome in varchar2
)
is
-- routine   internal_mark_lines
-- purpose   Give the lines of these messages another outcome.
-- differs   no such helper elsewhere: other engines return a query
    v_places t_places;
begin
    for i in 1 .. p_ids.count loop
        v_places(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. p_lines.count loop
        if v_places.exists(internal_number_text(p_lines(i).message_id)) then
            p_lines(i).outcome := p_outcome;
        end if;
    end loop;
end internal_mark_lines;
