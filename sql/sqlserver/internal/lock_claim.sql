set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockClaim
    @part_id int,
    @claim_id bigint,
    @message_ids nvarchar(max),
    @held_until datetime2(6) = null output,
    @has_cancels bit = null output,
    @worker_name nvarchar(400) = null output,
    @leased_at datetime2(6) = null output
as
begin
-- routine   InternalLockClaim
-- purpose   Lock a claim before messages are taken out of it; raise an error if it is gone and no list of messages is given.
-- promise   P08
-- locks     the claim row, first of all
-- errors    RQ721
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ721 stale_claim: claim ', @claim_id, N' holds nothing any more'
    );
    set @held_until = null;
    set @has_cancels = null;
    set @worker_name = null;
    set @leased_at = null;

    select @held_until = c.lease_until, @has_cancels = c.has_cancels,
           @worker_name = c.worker_name, @leased_at = c.leased_at
    from rowq.claim c with (rowlock, updlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id = @claim_id;
    if @held_until is null and @message_ids is null
        throw 52721, @text, 1;
end
go
