set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalHoldClaim
    @part_id int,
    @claim_id bigint,
    @message_ids nvarchar(max)
as
begin
-- routine   InternalHoldClaim
-- version   1
-- purpose   Lock a claim before anything is taken out of it; without a list of messages it must exist.
-- promise   P08
-- locks     the claim row, first of all
-- commits   never; the caller owns the transaction
-- errors    RQ721
-- differs   nothing
    set nocount on;
    declare @held bigint;
    declare @text nvarchar(2048) = concat(
        N'RQ721 stale_claim: claim ', @claim_id, N' holds nothing any more'
    );

    select @held = c.claim_id
    from rowq.claim c with (rowlock, updlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id = @claim_id;
    if @held is null and @message_ids is null
        throw 52721, @text, 1;
end
go
