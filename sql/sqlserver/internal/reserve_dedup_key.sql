set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalReserveDedupKey
    @part_id int,
    @dedup_key nvarchar(max),
    @message_id bigint,
    @holder bigint output
as
begin
-- routine   InternalReserveDedupKey
-- version   1
-- purpose   Note a message as the one that has a dedup key, or say which unfinished message has it.
-- promise   P12
-- locks     the dedup row; waits for who is just adding or freeing it
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    set nocount on;
    declare @key varbinary(802) = convert(varbinary(802), @dedup_key + N'.');
    set @holder = null;

    while 1 = 1
    begin
        select @holder = d.message_id
        from rowq.dedup d with (rowlock, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.dedup_key = @key;
        if @holder is not null
            break;

        -- A key that has come meanwhile is no row, and no error: see the table. Look again then,
        -- it may be gone already.
        insert into rowq.dedup with (rowlock) (part_id, dedup_key, message_id)
        values (@part_id, @key, @message_id);
        if @@rowcount = 1
            break;
    end;
end
go
