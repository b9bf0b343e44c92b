set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEndCancelled
    @part_id int,
    @messages rowq.message_list readonly,
    @may_close bit
as
begin
-- routine   InternalEndCancelled
-- purpose   End messages of a claim that were cancelled while a worker had them.
-- promise   P34
-- locks     as InternalFinish
    set nocount on;
    declare @archive_days int;
    if not exists (select 1 from @messages)
        return;

    select @archive_days = q.archive_days
    from rowq.queue q with (forceseek)
    where q.part_id = @part_id;
    exec rowq.InternalFinish @part_id, @archive_days, @messages, N'cancelled', @may_close;
end
go
