set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTrimClaim
    @part_id int,
    @claim_id bigint,
    @most_bytes bigint
as
begin
-- routine   InternalTrimClaim
-- purpose   Give back those messages of a new claim that go beyond @most_bytes; the first one stays.
-- promise   P02 P05
-- locks     rows of leased; new ready rows
    set nocount on;
    declare @lane smallint;
    declare @seq bigint;
    declare @message_id bigint;
    declare @rest rowq.message_list;

    -- Three bytes of a binary body become four letters of base64, which take eight bytes here. So
    -- each byte counts as three.
    select top (1) @lane = s.lane, @seq = s.seq, @message_id = s.message_id
    from (
        select l.lane, l.seq, l.message_id,
               row_number() over (order by l.lane, l.seq, l.message_id) as place,
               sum(
                   coalesce(datalength(m.body), 0) + coalesce(datalength(m.body_binary), 0) * 3
                   + coalesce(datalength(m.headers), 0) + coalesce(datalength(m.last_error), 0)
                   + 1000
               ) over (order by l.lane, l.seq, l.message_id rows unbounded preceding) as bytes
        from rowq.leased l with (forceseek)
        inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
            on m.part_id = @part_id
           and m.message_id = l.message_id
        where l.part_id = @part_id
          and l.claim_id = @claim_id
    ) s
    where s.place > 1
      and s.bytes > @most_bytes
    order by s.lane, s.seq, s.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @lane is null
        return;

    delete l
    output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
    into @rest (message_id, lane, place, attempt)
    from rowq.leased l with (rowlock, forceseek)
    where l.part_id = @part_id
      and l.claim_id = @claim_id
      and (
          l.lane > @lane
          or l.lane = @lane and l.seq > @seq
          or l.lane = @lane and l.seq = @seq and l.message_id >= @message_id
      )
    option (maxdop 1, keepfixed plan);
    exec rowq.InternalPushReady @part_id, @rest, @is_front = 1, @spent = 1;
end
go
