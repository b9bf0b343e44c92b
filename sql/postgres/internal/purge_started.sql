create or replace function rowq.internal_purge_started(
    p_part_id  integer,
    p_seconds  double precision,
    p_limit    integer,
    p_frontier bigint,
    p_writers  xid8
)
returns void
language plpgsql
as $$
-- routine   internal_purge_started
-- purpose   Delete up to p_limit notes of deliveries that began more than p_seconds ago.
-- promise   P13 P29
-- locks     started rows
declare
    v_before constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_seconds);
    v_from   timestamp with time zone;
    v_last   timestamp with time zone;
begin
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -5::smallint /* started */)
    );
    select max(h.started_at) into v_last
    from (
        select s.started_at
        from rowq.started s
        where s.part_id = p_part_id
          and s.started_at >= v_from
          and s.started_at < v_before
        order by s.part_id, s.started_at, s.claim_id
        limit p_limit
    ) h;

    if v_last is not null then
        delete from rowq.started s
        where s.part_id = p_part_id
          and s.started_at between v_from and v_last;
    else
        -- A queue that never had a rate_limit needs no floor.
        perform 1
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = -5 /* started */
        limit 1;
        if not found then
            return;
        end if;
    end if;
    perform rowq.internal_move_floor(
        p_part_id, -5::smallint /* started */, false, true, p_frontier, p_writers
    );
end;
$$;
