set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockClaim
    @part_id int,
    @claim_id bigint,
    @message_ids nvarchar(max),
    @held_until datetime2(6) = null output
as
begin
-- routine   InternalLockClaim
-- version   1
-- purpose   Lock a claim before anything is taken out of it; without a list of messages it must exist.
-- promise   P08
-- locks     the claim row, first of all
-- commits   never; the caller owns the transaction
-- errors    RQ721
-- differs   nothing
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ721 stale_claim: claim ', @claim_id, N' holds nothing any more'
    );
    set @held_until = null;

    select @held_until = c.lease_until
    from rowq.claim c with (rowlock, updlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id = @claim_id;
    if @held_until is null and @message_ids is null
        throw 52721, @text, 1;
end
go
