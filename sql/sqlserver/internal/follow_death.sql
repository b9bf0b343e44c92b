set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFollowDeath
    @part_id int,
    @dead_id bigint,
    @may_join bit,
    @failed nvarchar(max) output
as
begin
-- routine   InternalFollowDeath
-- purpose   Let the messages go on that wait for a dead one and do not mind; those that fail with it are added to @failed, as InternalUnblock returns them.
-- promise   P27
-- locks     successor rows; as InternalUnblock; new recheck rows
-- differs   part of internal_follow_deaths on PostgreSQL
    set nocount on;
    declare @most int = 1000;
    declare @count int;
    declare @ids nvarchar(max);
    declare @again nvarchar(max);
    declare @some nvarchar(max);
    declare @asking table (
        message_id bigint not null primary key
    );

    with head as (
        select top (@most) s.part_id, s.predecessor_id, s.message_id
        from rowq.successor s with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where s.part_id = @part_id
          and s.predecessor_id = @dead_id
          and s.on_dead in (N'continue', N'fail')
        order by s.message_id
    )
    delete from head
    output deleted.message_id
    into @asking (message_id)
    option (maxdop 1, keepfixed plan);
    set @count = @@rowcount;
    if @count = 0
        return;
    if @count = @most
        insert into rowq.recheck with (rowlock)
            (part_id, due_at, recheck_id, predecessor_id, is_hint)
        values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @dead_id, 1);

    select @ids = N'[' + string_agg(cast(a.message_id as nvarchar(max)), N',') + N']'
    from @asking a;
    exec rowq.InternalUnblock @part_id, @ids, null, @may_join, @again output, @some output;
    if @again is not null
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, message_id)
        select @part_id, sysutcdatetime(), next value for rowq.message_seq, cast(j.value as bigint)
        from openjson(@again) j
        option (maxdop 1, keepfixed plan);
    if @some is not null
        set @failed = iif(
            @failed is null, @some,
            concat(left(@failed, len(@failed) - 1), N',', substring(@some, 2, len(@some)))
        );
end
go
