drop procedure if exists rowq.internal_locate_messages;

delimiter //
create procedure rowq.internal_locate_messages(
    p_part_id int,
    p_message_id bigint,
    p_enqueued_at datetime(6),
    p_group_key varbinary(800),
    inout p_due_at datetime(6),
    out p_state varchar(20),
    out p_lane smallint,
    out p_attempt smallint,
    out p_claim_id bigint,
    out p_worker_name varchar(200),
    out p_leased_at datetime(6),
    out p_lease_until datetime(6),
    out p_finished_at datetime(6),
    out p_waits_for bigint,
    out p_progress varchar(2000)
)
sql security definer
reads sql data
begin
-- routine   internal_locate_messages
-- purpose   Find where a message is that still has a body; p_due_at is passed in as its last place in delayed.
    declare v_due_at datetime(6) default p_due_at;
    declare v_lane smallint;
    set p_due_at = null, p_state = null, p_lane = null, p_attempt = null, p_claim_id = null,
        p_worker_name = null, p_leased_at = null, p_lease_until = null, p_finished_at = null,
        p_waits_for = null, p_progress = null;

    select 'delayed', d.lane, d.attempt, d.due_at
    into p_state, p_lane, p_attempt, p_due_at
    from rowq.delayed d force index (primary)
    where d.part_id = p_part_id
      and d.due_at = v_due_at
      and d.message_id = p_message_id;

    if p_state is null then
        select 'dead', d.lane, d.attempt, d.died_at
        into p_state, p_lane, p_attempt, p_finished_at
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
          and d.message_id = p_message_id;
    end if;

    if p_state is null then
        select 'blocked', b.lane, 0, b.due_at, b.predecessor_id
        into p_state, p_lane, p_attempt, p_due_at, p_waits_for
        from rowq.blocked b force index (primary)
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    end if;

    if p_state is null and p_group_key is not null then
        select 'blocked', g.lane, 0
        into p_state, p_lane, p_attempt
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key = p_group_key
          and g.message_id = p_message_id;
        select g.message_id, g.lane into p_waits_for, v_lane
        from rowq.grouped g force index (primary)
        where p_state is not null
          and g.part_id = p_part_id
          and g.group_key = p_group_key
          and g.message_id < p_message_id
        order by g.part_id desc, g.group_key desc, g.message_id desc
        limit 1;
    end if;

    if p_state is null then
        select 'leased', c.lane, c.attempt, c.claim_id, c.worker_name, c.leased_at,
               c.lease_until, c.progress
        into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_leased_at,
             p_lease_until, p_progress
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id > 0
          and c.messages is null
          and p_message_id between c.first_id and c.last_id
        limit 1;
    end if;

    if p_state is null then
        select 'leased', j.lane, j.attempt, c.claim_id, c.worker_name, c.leased_at,
               c.lease_until, c.progress
        into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_leased_at,
             p_lease_until, p_progress
        from rowq.claim c force index (primary)
        straight_join json_table(
            c.messages, '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where c.part_id = p_part_id
          and c.claim_id > 0
          and j.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        select f.state, j.lane, j.attempt, f.finished_at
        into p_state, p_lane, p_attempt, p_finished_at
        from rowq.finished f force index (primary)
        straight_join json_table(
            f.messages, '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where f.part_id = p_part_id
          and f.finish_id > 0
          and j.message_id = p_message_id
        limit 1;
    end if;

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at.
    if p_state is null then
        select 'ready', r.lane, r.attempt
        into p_state, p_lane, p_attempt
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
          and r.seq = timestampdiff(microsecond, '1970-01-01', p_enqueued_at)
          and r.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        select 'ready', r.lane, r.attempt
        into p_state, p_lane, p_attempt
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        -- Another session has moved the message from one place to another between these looks, so
        -- it is in that session's hands: report it as leased.
        set p_state = 'leased';
    end if;
end//
delimiter ;
