set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFreeSuccessors
    @part_id int,
    @predecessor_id bigint,
    @may_join bit
as
begin
-- routine   InternalFreeSuccessors
-- purpose   Let the messages go on that have waited for this one, which has ended; leave to maintain those that cannot go on now.
-- promise   P26
-- locks     successor rows; as InternalLetGo; new recheck rows
    set nocount on;
    declare @most int = 1000;
    declare @count int;
    declare @ids nvarchar(max);
    declare @again nvarchar(max);
    declare @freed table (message_id bigint not null primary key);

    -- What this passes over is not committed yet, which only happens while the archive still keeps
    -- the predecessor, and the archiver comes for it; or another session frees it.
    with head as (
        select top (@most) s.part_id, s.predecessor_id, s.message_id
        from rowq.successor s with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where s.part_id = @part_id
          and s.predecessor_id = @predecessor_id
        order by s.message_id
    )
    delete from head
    output deleted.message_id
    into @freed (message_id)
    option (maxdop 1, keepfixed plan);
    set @count = @@rowcount;
    if @count = 0
        return;
    if @count = @most
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, predecessor_id)
        values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @predecessor_id);

    select @ids = N'[' + string_agg(cast(f.message_id as nvarchar(max)), N',') + N']'
    from @freed f;
    exec rowq.InternalLetGo @part_id, @ids, @predecessor_id, @may_join, @again output;
    if @again is not null
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, message_id)
        select @part_id, sysutcdatetime(), next value for rowq.message_seq, cast(j.value as bigint)
        from openjson(@again) j
        option (maxdop 1, keepfixed plan);
end
go
