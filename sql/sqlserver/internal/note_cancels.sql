set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNoteCancels
    @part_id int,
    @message_ids nvarchar(max),
    @noted_ids nvarchar(max) output
as
begin
-- routine   InternalNoteCancels
-- purpose   Note of leased messages that they were cancelled; @noted_ids are those noted, null where there is none.
-- promise   P34
-- locks     claim rows, then rows of leased, passing over locked ones
    set nocount on;
    declare @ids table (message_id bigint not null primary key);
    declare @found table (
        claim_id   bigint not null,
        lane       smallint not null,
        seq        bigint not null,
        message_id bigint not null,
        primary key (claim_id, lane, seq, message_id)
    );
    declare @claims table (claim_id bigint not null primary key);
    declare @noted table (message_id bigint not null primary key);
    set @noted_ids = null;

    -- No key leads from a message to its claim, so read what is leased once for all. A batch that
    -- another session is taking, or ending, is locked, and so passed over.
    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    insert into @found (claim_id, lane, seq, message_id)
    select l.claim_id, l.lane, l.seq, l.message_id
    from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
    inner join @ids j on j.message_id = l.message_id
    where l.part_id = @part_id
    option (hash join, force order, maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;

    -- Whoever takes messages out of a claim locks its row first. So behind that lock nobody else
    -- changes rows of leased; one that a reader keeps locked is passed over, too.
    update c
    set has_cancels = 1
    output inserted.claim_id into @claims (claim_id)
    from (select distinct f.claim_id from @found f) j
    inner join rowq.claim c with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on c.part_id = @part_id
       and c.claim_id = j.claim_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    update l
    set is_cancelled = 1
    output inserted.message_id into @noted (message_id)
    from @claims c
    inner join @found f on f.claim_id = c.claim_id
    inner join rowq.leased l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on l.part_id = @part_id
       and l.claim_id = f.claim_id
       and l.lane = f.lane
       and l.seq = f.seq
       and l.message_id = f.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    select @noted_ids = N'[' + string_agg(cast(n.message_id as nvarchar(max)), N',') + N']'
    from @noted n;
end
go
