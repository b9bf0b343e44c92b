procedure internal_locate_messages(
    p_part_id     in number,
    p_message_id  in number,
    p_group_key   in varchar2,
    p_due_at      in out timestamp,
    p_state       out varchar2,
    p_lane        out number,
    p_attempt     out number,
    p_claim_id    out number,
    p_worker_name out varchar2,
    p_lease_until out timestamp,
    p_finished_at out timestamp,
    p_waits_for   out number,
    p_leased_at   out timestamp
)
is
-- routine   internal_locate_messages
-- purpose   Find where a message is that still has a body; p_due_at is passed in as its last place in delayed.
    v_due_at constant timestamp(6) := p_due_at;
    v_key    constant raw(800) := utl_raw.cast_to_raw(p_group_key);
    cursor waiting is
        select 'delayed' as state, d.lane, d.attempt, d.due_at,
               cast(null as timestamp) as finished_at, cast(null as number) as waits_for
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at = v_due_at
          and d.message_id = p_message_id
        union all
        select 'dead' as state, d.lane, d.attempt, cast(null as timestamp) as due_at,
               d.died_at as finished_at, cast(null as number) as waits_for
        from rowq_dead d
        where d.part_id = p_part_id
          and d.message_id = p_message_id
        union all
        select f.state, f.lane, f.attempt, cast(null as timestamp) as due_at,
               f.finished_at, cast(null as number) as waits_for
        from rowq_finished f
        where f.part_id = p_part_id
          and f.message_id = p_message_id
        union all
        select 'blocked' as state, b.lane, 0 as attempt, b.due_at,
               cast(null as timestamp) as finished_at, b.predecessor_id as waits_for
        from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    cursor grouped is
        select 'blocked' as state, g.lane, 0 as attempt, (
                   select max(x.message_id)
                   from rowq_grouped x
                   where x.part_id = p_part_id
                     and x.group_key = v_key
                     and x.message_id < p_message_id
               ) as waits_for
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key = v_key
          and g.message_id = p_message_id;
    cursor held is
        select 'leased' as state, l.lane, l.attempt, c.claim_id, c.worker_name, c.lease_until,
               c.leased_at
        from rowq_claim c
        join rowq_leased l
          on l.part_id = c.part_id
         and l.claim_id = c.claim_id
        where c.part_id = p_part_id
          and l.message_id = p_message_id;
    -- first_place finds a message that was never given back, by its whole key; any_place looks
    -- among all ready messages of the queue.
    cursor first_place is
        select 'ready' as state, r.lane, r.attempt
        from rowq_message m
        join rowq_ready r
          on r.part_id = m.part_id
         and r.lane = m.lane
         and r.seq = m.seq
         and r.message_id = m.message_id
        where m.part_id = p_part_id
          and m.message_id = p_message_id;
    cursor any_place is
        select 'ready' as state, r.lane, r.attempt
        from rowq_ready r
        where r.part_id = p_part_id
          and r.message_id = p_message_id;
begin
    p_due_at := null;
    p_state := null;
    open waiting;
    fetch waiting into p_state, p_lane, p_attempt, p_due_at, p_finished_at, p_waits_for;
    close waiting;
    if p_state is null and v_key is not null then
        open grouped;
        fetch grouped into p_state, p_lane, p_attempt, p_waits_for;
        close grouped;
    end if;
    if p_state is null then
        open held;
        fetch held into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_lease_until,
            p_leased_at;
        close held;
    end if;
    if p_state is null then
        open first_place;
        fetch first_place into p_state, p_lane, p_attempt;
        close first_place;
    end if;
    if p_state is null then
        open any_place;
        fetch any_place into p_state, p_lane, p_attempt;
        close any_place;
    end if;
    if p_state is null then
        -- Another session has moved the message from one place to another between these looks, so
        -- it is in that session's hands: report it as leased.
        p_state := 'leased';
    end if;
end internal_locate_messages;
