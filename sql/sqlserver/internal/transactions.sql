-- Transactions: whose transaction a call runs in.
--
-- A call runs in the caller's transaction, or in one of its own, which it runs again after a
-- deadlock. The frame is in each routine; here is only the pause in it.
--
--   create_queue, alter_queue, drop_queue, ... -> pause_before_retry
--
-- No table.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalPauseBeforeRetry
as
begin
-- purpose   Wait 5 to 40 milliseconds, at random, before a transaction that was the victim of a deadlock begins again.
-- locks     none: its transaction is rolled back
-- differs   no such helper elsewhere, where the caller tries again
    set nocount on;
    -- Sessions that begin again at once, in the same order, meet again.
    declare @milliseconds int = 5 + abs(cast(checksum(newid()) as bigint)) % 36;
    declare @pause char(12) = concat(
        '00:00:00.0', right(concat('0', @milliseconds), 2)
    );
    waitfor delay @pause;
end
go
