set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDeleteClaim
    @part_id int,
    @claim_id bigint
as
begin
-- routine   InternalDeleteClaim
-- purpose   Remove a claim whose messages all leave it; raise an error if it is gone already.
-- promise   P08
-- locks     the claim row
-- errors    RQ721
-- differs   elsewhere a claim holds its messages in its own row
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ721 stale_claim: claim ', @claim_id, N' holds nothing any more'
    );

    delete c
    from rowq.claim c with (rowlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id = @claim_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        throw 52721, @text, 1;
end
go
