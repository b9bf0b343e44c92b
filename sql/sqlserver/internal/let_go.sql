set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLetGo
    @part_id int,
    @message_ids nvarchar(max),
    @ended_id bigint,
    @may_join bit,
    @again nvarchar(max) output
as
begin
-- routine   InternalLetGo
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. @again are the ids of those that need another look.
-- promise   P25 P26 P27
-- locks     as InternalUnblock and InternalFollowDeaths
    set nocount on;
    declare @failed nvarchar(max);

    exec rowq.InternalUnblock
        @part_id, @message_ids, @ended_id, @may_join, @again output, @failed output;
    if @failed is not null
        exec rowq.InternalFollowDeaths @part_id, null, @failed, @may_join;
end
go
