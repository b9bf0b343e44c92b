-- Transactions: whose transaction a call runs in.
--
-- Every call is in the caller's transaction. It sets the savepoint rowq_call and rolls back to it
-- if it is refused. In a trigger there can be no savepoint; then the statement that fired it is
-- undone.
--
--   create_queue, alter_queue, drop_queue, ... -> begin_work, roll_back
--
-- No table.

procedure internal_begin_work(p_has_savepoint out boolean)
is
-- purpose   Set a savepoint in the caller's transaction, unless the caller is a trigger or another database.
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

procedure internal_roll_back(p_has_savepoint in boolean)
is
-- purpose   Take back what was done since internal_begin_work, where it has set a savepoint.
-- commits   never; rolls back to where internal_begin_work was called
-- differs   needed where a procedure opens a transaction or, as here, a trigger may call it
begin
    if p_has_savepoint then
        rollback to savepoint rowq_call;
    end if;
end internal_roll_back;
