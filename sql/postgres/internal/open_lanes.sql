create or replace function rowq.internal_open_lanes(p_part_id integer, p_lanes smallint[])
returns void
language plpgsql
as $$
-- routine   internal_open_lanes
-- purpose   Make lanes known to dequeue before the first row is put into them.
-- promise   P02 P13
-- locks     none that another producer could wait for
-- differs   only engines whose readers walk dead rows need it
begin
    -- Each producer that does not see the lane adds a row of its own, with its transaction id as
    -- generation. So no producer waits for another one's open transaction, and a rollback removes
    -- only its own row. The lane's newest row is looked for in the order of the key, because "not
    -- exists" would become a join that reads all dead rows of the lane.
    insert into rowq.floor (
        part_id, lane, generation, seq, safe, frontier, writers, rescan_at, sweep_at
    )
    select p_part_id, l.lane, pg_current_xact_id()::text::bigint, 0, 0, 0, '0',
           clock_timestamp(), clock_timestamp() + interval '1 minute'
    from (select distinct u.lane from unnest(p_lanes) u (lane)) l
    where (
        select f.lane
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = l.lane
        order by f.part_id, f.lane, f.generation
        limit 1
    ) is null
    on conflict do nothing;
end;
$$;
