procedure internal_as_front(p_messages in out nocopy t_messages, p_spent in number)
is
-- routine   internal_as_front
-- purpose   Prepare messages for the front of their priority, with p_spent attempts fewer.
-- promise   P09
begin
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2;
        p_messages(i).attempt := p_messages(i).attempt - p_spent;
    end loop;
end internal_as_front;
