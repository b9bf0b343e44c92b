-- Transactions: the transaction that a call runs in.
--
-- A call runs in the caller's transaction or, if there is none, in its own, which it retries after
-- a deadlock. That code is in each routine; this file has only the pause before a retry.
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
-- purpose   Wait 5 to 40 ms, at random, before a deadlocked transaction is retried.
    set nocount on;
    -- Sessions that retry at once, in the same order, would deadlock again.
    declare @milliseconds int = 5 + abs(cast(checksum(newid()) as bigint)) % 36;
    declare @pause char(12) = concat(
        '00:00:00.0', right(concat('0', @milliseconds), 2)
    );
    waitfor delay @pause;
end
go
