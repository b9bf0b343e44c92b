procedure internal_split_by_cancel(
    p_messages  in t_messages,
    p_rest      out nocopy t_messages,
    p_cancelled out nocopy t_messages
)
is
-- routine   internal_split_by_cancel
-- purpose   Divide messages of a claim into those that were cancelled and the rest.
-- promise   P34
-- differs   no such helper elsewhere: other engines keep a claim's cancelled messages as a list
begin
    p_rest.delete;
    p_cancelled.delete;
    for i in 1 .. p_messages.count loop
        if p_messages(i).is_cancelled = 1 then
            p_cancelled(p_cancelled.count + 1) := p_messages(i);
        else
            p_rest(p_rest.count + 1) := p_messages(i);
        end if;
    end loop;
end internal_split_by_cancel;
