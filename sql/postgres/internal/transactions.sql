-- Transactions: whose transaction a call runs in.
--
-- A call runs in the caller's transaction. After a refused call PostgreSQL lets that transaction do
-- nothing more, so a caller that wants to go on sets a savepoint first. dequeue_wait and
-- wait_for_result commit, so they refuse to be called inside a transaction.
--
--   dequeue_wait, wait_for_result -> require_autocommit
--
-- No table.

create or replace procedure rowq.internal_require_autocommit(p_routine text)
language plpgsql
as $$
-- purpose   Fail before anything is done when the caller of p_routine has a transaction open.
-- commits   yes; that is what it tries out
-- errors    RQ713
-- differs   PostgreSQL gives no way to ask; where the open transaction has written nothing yet, the
--           error is its own 2D000 "invalid transaction termination", with this procedure's name
begin
    if pg_catalog.pg_current_xact_id_if_assigned() is not null then
        raise exception
            'RQ713 wrong_transaction_state: % commits; call it outside a transaction', p_routine
            using errcode = 'RQ713';
    end if;
    commit;
end;
$$;
