set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalIsBlocked
    @part_id int,
    @message_id bigint,
    @is_blocked bit output
as
begin
-- routine   InternalIsBlocked
-- purpose   Ask whether a message may still be among those that wait for others: 1 where another session has locked it, too.
-- locks     the blocked row, shared while it is read, tried only
-- differs   no such helper elsewhere: there a plain read tells
    set nocount on;
    declare @found_id bigint;

    -- As in InternalAwaitPredecessor, error 1222 must not end the transaction.
    set xact_abort off;
    begin try
        select @found_id = b.message_id
        from rowq.blocked b with (rowlock, readcommittedlock, nowait, forceseek)
        where b.part_id = @part_id
          and b.message_id = @message_id;
        set @is_blocked = iif(@found_id is null, 0, 1);
    end try
    begin catch
        if error_number() <> 1222
            throw;
        set @is_blocked = 1;
    end catch;
end
go
