procedure internal_as_front(p_messages in out nocopy t_messages, p_spent in number)
is
-- routine   internal_as_front
-- version   1
-- purpose   Messages as they go to the front of their priority, p_spent attempts fewer.
-- promise   P09
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
begin
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2;
        p_messages(i).attempt := p_messages(i).attempt - p_spent;
    end loop;
end internal_as_front;
