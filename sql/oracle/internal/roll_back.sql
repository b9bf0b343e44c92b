procedure internal_roll_back(p_has_savepoint in boolean)
is
-- routine   internal_roll_back
-- purpose   Take back what was done since internal_begin_work, where it has set a savepoint.
-- promise   P15 P17
-- commits   never; rolls back to where internal_begin_work was called
-- differs   needed where a procedure opens a transaction or, as here, a trigger may call it
begin
    if p_has_savepoint then
        rollback to savepoint rowq_call;
    end if;
end internal_roll_back;
