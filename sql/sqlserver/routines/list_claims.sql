set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListClaims
    @queue_name nvarchar(max) = null,
    @after_claim_id bigint = 0,
    @max_claims int = 100
as
begin
-- routine   ListClaims
-- version   1
-- purpose   List the claims of one queue or all, by id.
-- promise   none
-- locks     claim and leased rows, shared while reading, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a claim committed late is listed once maintain has corrected its floor; a locked claim
--           is omitted
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int, @queue_id int;

    begin try
        exec rowq.InternalCheckRange N'max_claims', @max_claims, 1, 10000, @is_required = 1;
        -- Under implicit_transactions this read begins the caller's transaction, before the
        -- isolation level changes. @begun only keeps the value out of the results.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        if @queue_name is not null
            exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        select top (@max_claims) q.queue_name, c.claim_id, c.worker_name,
               (
                   select count(*)
                   from (
                       select top (1000) 1 as one
                       from rowq.leased l
                           with (
                               rowlock, readpast, readcommittedlock,
                               forceseek (leased_pk (queue_id, claim_id))
                           )
                       where l.queue_id = q.queue_id
                         and l.claim_id = c.claim_id
                   ) h
               ) as message_count,
               c.lease_until,
               datediff_big(microsecond, sysutcdatetime(), c.lease_until) / 1e6
                   as lease_left_seconds
        from rowq.queue q
        inner join rowq.lane f with (readuncommitted, forceseek (lane_pk (queue_id, lane)))
            on f.queue_id = q.queue_id
           and f.lane = -1 /* claim */
        -- top keeps this an apply per queue, which sorts at most one page, and keeps the count an
        -- apply too. A claim never has more messages.
        cross apply (
            select top (@max_claims) k.claim_id, k.worker_name, k.lease_until
            from rowq.claim k with (rowlock, readpast, readcommittedlock, forceseek)
            where k.queue_id = q.queue_id
              and k.claim_id >= f.floor
              and k.claim_id > coalesce(@after_claim_id, 0)
            order by k.claim_id
        ) c
        where @queue_id is null
           or q.queue_id = @queue_id
        order by c.claim_id
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
