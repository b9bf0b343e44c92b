set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPopReady
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @claim_id bigint output,
    @taken int output
as
begin
-- routine   InternalPopReady
-- purpose   Move up to @limit messages from the lanes to a claim, best lane first; @claim_id is a new number unless one is passed in.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones; as a guest the lane of guests, shared
    set nocount on;
    declare @left int = @limit;
    declare @lane smallint = -1;
    declare @next smallint;
    declare @callers_lane smallint;
    declare @floor bigint;
    declare @first bigint;
    declare @recent bigint;

    -- A guest holds lane -22 shared to the end of the caller's transaction, so that no floor moves
    -- up past rows that a rollback would put back. @callers_lane only takes what this read returns.
    if @owns_transaction = 0
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.part_id = @part_id
          and l.lane = -22 /* callers */;

    while @left > 0
    begin
        -- A front lane (an even number) is empty most of the time, so this statement looks into it
        -- and spares the delete below. A tail lane gets its delete at once, because a look would
        -- walk over the same ghosts first.
        set @next = null;
        select top (1) @next = l.lane, @floor = l.floor
        from rowq.lane l with (readuncommitted, forceseek)
        where l.part_id = @part_id
          and l.lane > @lane
          and l.is_open = 1
          and (
              l.lane % 2 = 1
              or exists (
                  select 1
                  from rowq.ready r
                      with (
                          rowlock, readpast, readcommittedlock, forceseek (ready_pk (part_id, lane))
                      )
                  where r.part_id = @part_id
                    and r.lane = l.lane
                    and r.seq >= l.floor
              )
          )
        order by l.lane
        option (loop join, maxdop 1, keepfixed plan);
        if @next is null
            break;
        set @lane = @next;
        if @claim_id is null
            set @claim_id = next value for rowq.claim_seq;

        -- This is one seek to the floor and a walk along the key. It locks one row after the other
        -- and passes over rows that other sessions have locked. An update lock would not do: it is
        -- granted beside a reader's shared lock, and then the delete waits for the reader. A plan
        -- for one row has no sort above the insert, for which a plan for many may ask memory.
        with head as (
            select top (@left) r.part_id, r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where r.part_id = @part_id
              and r.lane = @lane
              and r.seq >= @floor
            order by r.seq, r.message_id
        )
        delete from head
        output deleted.part_id, @claim_id, deleted.lane, deleted.seq, deleted.message_id,
               deleted.attempt + 1
        into rowq.leased (part_id, claim_id, lane, seq, message_id, attempt)
        option (maxdop 1, keepfixed plan, optimize for (@left = 1));
        set @next = @@rowcount;
        if @next = 0
            continue;
        set @left -= @next;

        if @owns_transaction = 1 and @claim_id % 12 = 0
        begin
            -- Moving the floor costs a write, so only one dequeue in twelve does it. The floor
            -- moves up to the first message taken, but stays half a second behind now, because
            -- messages of the last moments may not be committed yet.
            set @recent = datediff_big(microsecond, '19700101', sysutcdatetime()) - 500000;
            select top (1) @first = l.seq
            from rowq.leased l with (forceseek)
            where l.part_id = @part_id
              and l.claim_id = @claim_id
              and l.lane = @lane
            order by l.seq;
            if @first > @recent
                set @first = @recent;
            if @first > @floor
                exec rowq.InternalMoveFloor @part_id, @lane, @floor, @first;
        end;
    end;
    set @taken = @limit - @left;
end
go
