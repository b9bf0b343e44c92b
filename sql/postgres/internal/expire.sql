create or replace function rowq.internal_expire(
    p_part_id      integer,
    p_archive_days integer,
    p_limit        integer,
    p_frontier     bigint,
    p_writers      xid8
)
returns integer
language plpgsql
as $$
-- routine   internal_expire
-- purpose   Withdraw messages whose time has come, until p_limit is passed; return how many there were.
-- promise   P13 P36
-- locks     expiry rows, passing over locked ones; as internal_pop_expired; then as complete
declare
    c_steps        constant integer := 10;
    c_long_walk    constant interval := interval '20 milliseconds';
    v_started      constant timestamp with time zone := clock_timestamp();
    -- The moment is no function in the query, so that the scan stops at the last row that is due.
    v_now          timestamp with time zone;
    v_from         timestamp with time zone;
    v_from_id      bigint := 0;
    v_due          record;
    v_popped       record;
    v_seen         integer := 0;
    v_row          record;
    v_kept         bigint[];
    v_kept_moments timestamp with time zone[];
    v_expired      integer := 0;
begin
    -- A message that an old snapshot does not show where it is now would be taken for one that has
    -- ended.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return 0;
    end if;

    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -6::smallint /* expiry */)
    );
    for v_step in 1 .. c_steps loop
        exit when v_expired >= p_limit;
        -- Take the time anew, because what the end of a message has let go on has a row of a later
        -- moment.
        v_now := clock_timestamp();

        -- One statement looks for the message in all places, so that none is missed on its way from
        -- one to another. Scalar subqueries are lookups by key; "exists" may become a hash of all
        -- rows.
        select array_agg(h.expiry_id) ids, array_agg(h.message_id) message_ids,
               array_agg(
                   case when h.later_at > v_now and h.place <> '' then 'later' else h.place end
               ) places,
               array_agg(h.lane) lanes, array_agg(h.seq) seqs, array_agg(h.expires_at) moments,
               array_agg(h.later_at) later_ats, max(h.expires_at) last_at, count(*) as due
        into v_due
        from (
            select e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq,
                   m.expires_at as later_at,
                   case
                       when m.message_id is null then null
                       when (
                           select true
                           from rowq.ready r
                           where r.part_id = p_part_id
                             and r.lane = e.lane
                             and r.seq = e.seq
                             and r.message_id = e.message_id
                       ) then 'ready'
                       when (
                           select true
                           from rowq.delayed d
                           where d.part_id = p_part_id
                             and d.message_id = e.message_id
                       ) then 'delayed'
                       when (
                           select true
                           from rowq.blocked b
                           where b.part_id = p_part_id
                             and b.message_id = e.message_id
                       ) then 'blocked'
                       when (
                           select true
                           from rowq.grouped g
                           where g.part_id = p_part_id
                             and g.group_key = m.group_key
                             and g.message_id = e.message_id
                       ) then 'grouped'
                   end as place
            from (
                select x.expires_at, x.expiry_id, x.message_id, x.lane, x.seq
                from rowq.expiry x
                where x.part_id = p_part_id
                  and (x.expires_at, x.expiry_id) > (v_from, v_from_id)
                  and x.expires_at <= v_now
                order by x.part_id, x.expires_at, x.expiry_id
                limit p_limit
                for update skip locked
            ) e
            left join lateral (
                select y.message_id, y.group_key, y.expires_at
                from rowq.message y
                where y.part_id = p_part_id
                  and y.message_id = e.message_id
                offset 0
            ) m on true
        ) h;
        exit when v_due.due = 0;
        v_seen := v_seen + v_due.due;

        v_popped := rowq.internal_pop_expired(
            p_part_id, v_due.message_ids, v_due.places, v_due.lanes, v_due.seqs
        );
        if v_popped.o_message_ids <> '{}' then
            perform rowq.internal_finish(
                p_part_id, p_archive_days, v_popped.o_message_ids, v_popped.o_lanes,
                v_popped.o_attempts, 'expired', v_popped.o_tokenless
            );
            v_expired := v_expired + cardinality(v_popped.o_message_ids);
        end if;

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a row. One that another session holds now is looked for again, and one row of a
        -- message that expires later is put off. Delete the rows one by one, because many are of
        -- one moment, and the planner may make a filter over all that are due of any other way.
        for v_row in
            select u.expires_at, u.expiry_id, u.later_at, u.place = 'later' as is_later,
                   u.place is null
                   or u.message_id = any (v_popped.o_message_ids)
                   or u.place = 'later'
                   and row_number() over (
                       partition by u.message_id, u.place order by u.expiry_id
                   ) > 1
                       as is_done
            from unnest(
                v_due.moments, v_due.ids, v_due.message_ids, v_due.places, v_due.later_ats
            ) u (expires_at, expiry_id, message_id, place, later_at)
        loop
            if v_row.is_later and not v_row.is_done then
                update rowq.expiry e
                set expires_at = least(v_row.later_at, v_now + interval '1 day')
                where e.part_id = p_part_id
                  and e.expires_at = v_row.expires_at
                  and e.expiry_id = v_row.expiry_id;
            elsif v_row.is_done then
                delete from rowq.expiry e
                where e.part_id = p_part_id
                  and e.expires_at = v_row.expires_at
                  and e.expiry_id = v_row.expiry_id;
            else
                v_kept := v_kept || v_row.expiry_id;
                v_kept_moments := v_kept_moments || v_row.expires_at;
            end if;
        end loop;

        select v_due.last_at, max(u.expiry_id) into v_from, v_from_id
        from unnest(v_due.ids, v_due.moments) u (expiry_id, expires_at)
        where u.expires_at = v_due.last_at;
        exit when v_due.due < p_limit;
    end loop;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
    if v_kept is not null and (
        v_seen >= c_steps * p_limit or clock_timestamp() - v_started > c_long_walk
    ) then
        for v_row in
            select u.expires_at, u.expiry_id
            from unnest(v_kept_moments, v_kept) u (expires_at, expiry_id)
        loop
            update rowq.expiry e
            set expires_at = v_now
            where e.part_id = p_part_id
              and e.expires_at = v_row.expires_at
              and e.expiry_id = v_row.expiry_id;
        end loop;
    end if;
    -- The rows were deleted just now, and safe follows only with a row of the ledger.
    if v_seen > 0 then
        perform rowq.internal_move_floor(
            p_part_id, -6::smallint /* expiry */, true, true, p_frontier, p_writers
        );
    end if;
    return v_expired;
end;
$$;
