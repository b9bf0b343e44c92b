-- Transactions: the transaction that a call runs in.
--
-- A call runs in the caller's transaction. It sets the savepoint rowq_call, and rolls back to it on
-- an error. A trigger cannot set a savepoint; there an error rolls back the statement that fired
-- it.
--
--   create_queue, alter_queue, drop_queue, ... -> begin_work, roll_back
--
-- No table.

procedure internal_begin_work(p_has_savepoint out boolean)
is
-- purpose   Set a savepoint, unless the caller is a trigger or another database.
-- differs   only here a trigger can call a routine with a savepoint
    -- ORA-04092: no savepoint in a trigger. ORA-02074: none in a session of another database. There
    -- the failing statement, or the other database, rolls back.
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
-- purpose   Roll back to the savepoint of internal_begin_work, if it has set one.
-- differs   only here a trigger can call a routine with a savepoint
begin
    if p_has_savepoint then
        rollback to savepoint rowq_call;
    end if;
end internal_roll_back;
