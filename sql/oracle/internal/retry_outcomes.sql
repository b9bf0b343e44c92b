function internal_retry_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_alive    in t_messages,
    p_due_at   in t_moments
)
return rowq_lines
is
-- routine   internal_retry_outcomes
-- version   1
-- purpose   The lines of retry_later: retrying with the moment it is due, dead, or stale.
-- promise   P08 P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of retry_later
    v_lines rowq_lines := internal_outcomes(p_ids, p_messages, 'retrying');
    v_alive t_places;
    v_text  varchar2(50 char);
begin
    for i in 1 .. p_alive.count loop
        v_alive(internal_number_text(p_alive(i).message_id)) := i;
    end loop;
    for i in 1 .. v_lines.count loop
        if v_lines(i).outcome = 'retrying' then
            v_text := internal_number_text(v_lines(i).message_id);
            if v_alive.exists(v_text) then
                v_lines(i).due_at := p_due_at(v_alive(v_text));
            else
                v_lines(i).outcome := 'dead';
            end if;
        end if;
    end loop;
    return v_lines;
end internal_retry_outcomes;
