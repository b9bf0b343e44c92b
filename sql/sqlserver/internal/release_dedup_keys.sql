set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalReleaseDedupKeys
    @part_id int,
    @messages rowq.message_list readonly
as
begin
-- routine   InternalReleaseDedupKeys
-- version   1
-- purpose   Free the dedup keys of messages that are finished or dead.
-- promise   P12
-- locks     dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    set nocount on;
    delete k
    from @messages j
    inner join rowq.message m with (forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
       and m.dedup_key is not null
    inner join rowq.dedup k with (rowlock, forceseek)
        on k.part_id = @part_id
       and k.dedup_key = convert(varbinary(802), m.dedup_key + N'.')
       and k.message_id = j.message_id
    option (loop join, force order, maxdop 1);
end
go
