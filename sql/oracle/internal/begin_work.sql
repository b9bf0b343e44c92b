procedure internal_begin_work(p_has_savepoint out boolean)
is
-- routine   internal_begin_work
-- purpose   Set a savepoint in the caller's transaction, unless the caller is a trigger or another database.
-- promise   P15 P17
-- differs   needed where a procedure opens a transaction or, as here, a trigger may call it
    -- ORA-04092: no savepoint in a trigger. ORA-02074: none in a session that another database has
    -- opened. There the failing statement, or the other database, takes back what was done.
    e_in_trigger exception;
    pragma exception_init(e_in_trigger, -4092);
    e_distributed exception;
    pragma exception_init(e_distributed, -2074);
begin
    savepoint rowq_call;
    p_has_savepoint := true;
exception
    when e_in_trigger or e_distributed then
        p_has_savepoint := false;
end internal_begin_work;
