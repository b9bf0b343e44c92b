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
-- locks     the message row, tried only; as InternalFreeSuccessors
    set nocount on;
    set @is_done = 1;

    delete m
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.part_id = @part_id
      and m.message_id = @message_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 1
        exec rowq.InternalFreeSuccessors @part_id, @message_id, @may_join = 1;
    else if exists (
        select 1
        from rowq.message m with (readuncommitted, forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id
    )
        set @is_done = 0;
end
go
