set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEndHeld
    @part_id int,
    @message_id bigint,
    @is_done bit output
as
begin
-- routine   InternalEndHeld
-- purpose   Delete a message that has ended while another transaction had locked its row, and let the messages go on that have come to wait for it; @is_done is 0 where the row is locked still. Call it in a transaction of rowq's own.
-- promise   P26
-- locks     the message row, tried only; as InternalFreeSuccessors and InternalAwaitPredecessor
    set nocount on;
    declare @ids nvarchar(max) = concat(N'[', @message_id, N']');
    declare @state nvarchar(20);
    declare @predecessor_id bigint;
    declare @rest_ids nvarchar(max);
    set @is_done = 1;

    delete m
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.part_id = @part_id
      and m.message_id = @message_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 1
        exec rowq.InternalFreeSuccessors @part_id, @message_id, @may_join = 1;
    else
    begin
        -- It is locked still, or was deleted.
        exec rowq.InternalAwaitPredecessor
            @part_id, @ids, null, @state output, @predecessor_id output, @rest_ids output;
        set @is_done = iif(@state = N'free', 1, 0);
    end;
end
go
