set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPromoteGrouped
    @part_id int,
    @group_key varbinary(802),
    @message_id bigint,
    @lane smallint,
    @has_token bit output
as
begin
-- routine   InternalPromoteGrouped
-- purpose   Let a due message join its group: with a token it is for the caller to make ready, with 0 it waits there, and with null it is delayed by another half second.
-- promise   P11 P21 P22 P36
-- locks     as InternalTryJoinGroup; the message row, tried; new delayed and expiry
--           rows
-- differs   no such helper on PostgreSQL: part of internal_promote
    set nocount on;
    declare @due_at datetime2(6) = dateadd(millisecond, 500, sysutcdatetime());
    declare @delayed rowq.message_list;

    exec rowq.InternalTryJoinGroup
        @part_id, @group_key, @message_id, @lane, @has_token output;
    if @has_token is not null
        return;

    -- message.due_at finds a delayed message, so the two change together. Where a producer holds
    -- the row, because it names the message, both stay as they are.
    update m
    set due_at = @due_at
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.part_id = @part_id
      and m.message_id = @message_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        select @due_at = m.due_at
        from rowq.message m with (forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id;
    insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
    values (@part_id, @due_at, @message_id, @lane, @group_key);
    -- Without a note, who has just read its old time would not find it by the new one.
    insert into @delayed (message_id, lane, place, attempt) values (@message_id, @lane, 0, 0);
    exec rowq.InternalNoteExpiry @part_id, @delayed;
end
go
