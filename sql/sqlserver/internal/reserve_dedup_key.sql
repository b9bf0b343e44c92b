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
-- purpose   Reserve a dedup key for a message, or return the unfinished message that has it.
-- promise   P12
-- locks     the dedup row; waits for a session that is adding or freeing it
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

        -- If another session has added the key meanwhile, this inserts no row and raises no error
        -- (ignore_dup_key). Then look again, because the key may be gone already.
        insert into rowq.dedup with (rowlock) (part_id, dedup_key, message_id)
        values (@part_id, @key, @message_id);
        if @@rowcount = 1
            break;
    end;
end
go
