set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalAdmit
    @part_id int,
    @max_leased int,
    @rate_limit int output,
    @rate_seconds float,
    @wanted int,
    @room int output
as
begin
-- routine   InternalAdmit
-- purpose   Return how many messages a dequeue may lease under its queue's limits, and the rate_limit by then; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- differs   PostgreSQL refuses an old snapshot: here a routine reads what is committed at any level
    set nocount on;
    declare @is_locked bit;
    declare @is_paused bit;

    -- Look first, because a poll of a queue without room shall neither wait nor lock the gate.
    exec rowq.InternalRoom
        @part_id, @max_leased, @rate_limit, @rate_seconds, @wanted, @room output;
    if @room = 0
        return;
    exec rowq.InternalLockGate @part_id, @is_locked output;
    set @room = 0;
    if @is_locked = 0
        return;

    -- Look again, in statements of their own: they begin after the lock was had, so they see what
    -- the session leased that held the gate before, and settings that were changed meanwhile.
    select @is_paused = iif(q.paused_at is null, 0, 1), @max_leased = q.max_leased,
           @rate_limit = q.rate_limit, @rate_seconds = q.rate_seconds
    from rowq.queue q with (forceseek)
    where q.part_id = @part_id;
    if @is_paused = 0
        exec rowq.InternalRoom
            @part_id, @max_leased, @rate_limit, @rate_seconds, @wanted, @room output;
end
go
