-- Transactions: the transaction that a call runs in.
--
-- A call runs in the caller's transaction. An error aborts that transaction, so a caller that wants
-- to continue sets a savepoint first. dequeue_wait and wait_for_result commit, and refuse to run
-- inside a transaction.
--
--   dequeue_wait, wait_for_result -> require_autocommit
--
-- No table.

create or replace procedure rowq.internal_require_autocommit(p_routine text)
language plpgsql
as $$
-- purpose   Refuse a call of p_routine inside a transaction.
-- commits   yes: committing fails inside a transaction
-- errors    RQ713
-- differs   PostgreSQL cannot report an open transaction that has not written yet; its own error
--           2D000 "invalid transaction termination" then names this procedure
begin
    if pg_catalog.pg_current_xact_id_if_assigned() is not null then
        raise exception
            'RQ713 wrong_transaction_state: '
            '% commits while it waits; call it outside a transaction', p_routine
            using errcode = 'RQ713';
    end if;
    commit;
end;
$$;
