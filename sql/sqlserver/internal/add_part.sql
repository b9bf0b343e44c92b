set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalAddPart
    @part_id int
as
begin
-- routine   InternalAddPart
-- purpose   Insert the part row, the gate and the lanes of a new queue.
-- promise   P13
-- locks     new rows only
-- differs   PostgreSQL opens lanes when they are first used
    set nocount on;
    insert into rowq.part (part_id) values (@part_id);
    insert into rowq.gate with (rowlock) (part_id) values (@part_id);

    -- The lanes of the default priority are open from the start, because most queues use no others.
    insert into rowq.lane with (rowlock) (part_id, lane, is_open)
    select @part_id, v.lane, iif(v.lane in (10, 11), 1, 0)
    from (
        values (-22 /* callers */), (-21 /* election */), (-8 /* history */), (-7 /* result */),
               (-6 /* expiry */), (-5 /* started */), (-4 /* deferred */), (-3 /* finished */),
               (-2 /* delayed */), (-1 /* claim */), (0), (1), (2), (3), (4), (5), (6), (7), (8),
               (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19)
    ) v (lane);
end
go
