set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDeleteEmptyClaim
    @part_id int,
    @claim_id bigint
as
begin
-- routine   InternalDeleteEmptyClaim
-- purpose   Remove a claim that holds nothing any more.
-- promise   P08
-- locks     the claim row
-- differs   elsewhere a claim holds its messages in its own row
    set nocount on;
    delete c
    from rowq.claim c with (rowlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id = @claim_id
      and not exists (
          select 1
          from rowq.leased l with (forceseek)
          where l.part_id = @part_id
            and l.claim_id = @claim_id
      )
    option (loop join, maxdop 1, keepfixed plan);
end
go
