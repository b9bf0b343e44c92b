set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRecheckDeath
    @part_id int,
    @message_id bigint,
    @may_join bit,
    @is_done bit output
as
begin
-- routine   InternalRecheckDeath
-- purpose   Look again what waits for a dead message; @is_done is 0 where another session is at work on it.
-- promise   P27
-- locks     the message row, tried only; as InternalFollowDeaths
    set nocount on;
    declare @locked_id bigint;
    declare @ids nvarchar(max) = concat(N'[', @message_id, N']');
    declare @state nvarchar(20);
    declare @predecessor_id bigint;
    declare @rest_ids nvarchar(max);

    select @locked_id = m.message_id
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.part_id = @part_id
      and m.message_id = @message_id;
    if @locked_id is null
    begin
        -- It is gone, or a producer is adding a message that waits for it, or it is being reset.
        exec rowq.InternalAwaitPredecessor
            @part_id, @ids, null, @state output, @predecessor_id output, @rest_ids output;
        set @is_done = iif(@state = N'free', 1, 0);
        return;
    end;

    -- One that was reset meanwhile is waited for as before.
    set @is_done = 1;
    if exists (
        select 1
        from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.message_id = @message_id
    )
        exec rowq.InternalFollowDeaths @part_id, @ids, null, @may_join;
end
go
