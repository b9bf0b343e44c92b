create or replace function rowq.internal_purge_results(
    p_part_id  integer,
    p_seconds  double precision,
    p_limit    integer,
    p_until    timestamp with time zone,
    p_frontier bigint,
    p_writers  xid8
)
returns integer
language plpgsql
set lock_timeout = '1s'
as $$
-- routine   internal_purge_results
-- purpose   Delete up to p_limit results of messages that ended more than p_seconds ago, and until p_until up to ten times as many; return how many.
-- promise   P13 P32
-- locks     result rows, passing over locked ones; the table, waited for a second
declare
    v_before constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_seconds);
    v_from   timestamp with time zone;
    v_row    record;
    v_purged integer := 0;
begin
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -7::smallint /* result */)
    );
    -- Delete the rows one by one, because the planner may make "= any" a filter over all rows.
    for v_row in
        select r.message_id
        from rowq.result r
        where r.part_id = p_part_id
          and r.finished_at >= v_from
          and r.finished_at < v_before
        order by r.part_id, r.finished_at
        limit 10 * p_limit
        for update skip locked
    loop
        delete from rowq.result r
        where r.part_id = p_part_id
          and r.message_id = v_row.message_id;
        v_purged := v_purged + 1;
        exit when v_purged >= p_limit and clock_timestamp() > p_until;
    end loop;

    if v_purged = 0 then
        -- A queue that has purged no result yet needs no floor.
        perform 1
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = -7 /* result */
        limit 1;
        if not found then
            return 0;
        end if;
    end if;
    perform rowq.internal_move_floor(
        p_part_id, -7::smallint /* result */, v_purged > 0, true, p_frontier, p_writers
    );
    return v_purged;
end;
$$;
