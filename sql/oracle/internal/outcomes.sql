function internal_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_other    in varchar2 default 'stale'
)
return rowq_lines
is
-- routine   internal_outcomes
-- purpose   Return a line for each message: p_outcome for p_messages, p_other for the others that were asked for.
-- promise   P08
-- differs   no such helper elsewhere: other engines return a query
    v_lines rowq_lines := rowq_lines();
    v_done  t_places;
begin
    if p_ids is null then
        v_lines.extend(p_messages.count);
        for i in 1 .. p_messages.count loop
            v_lines(i) := rowq_line(
                i, p_messages(i).message_id, p_messages(i).lane, p_messages(i).attempt,
                p_outcome, null
            );
        end loop;
        return v_lines;
    end if;

    for i in 1 .. p_messages.count loop
        v_done(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    v_lines.extend(p_ids.count);
    for i in 1 .. p_ids.count loop
        v_lines(i) := rowq_line(
            i, p_ids(i), null, null,
            case
                when v_done.exists(internal_number_text(p_ids(i))) then p_outcome
                else p_other
            end,
            null
        );
    end loop;
    return v_lines;
end internal_outcomes;
