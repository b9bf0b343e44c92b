drop procedure if exists rowq.get_message;

delimiter //
create procedure rowq.get_message(p_queue_name longtext, p_message_id bigint)
sql security definer
modifies sql data
comment 'Return the state of a message and all its data, or no row if unknown.'
begin
-- routine   get_message
-- version   1
-- purpose   Return the state of a message and all its data, or no row if unknown.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_queue_id int;
    declare v_enqueued_at, v_due_at, v_leased_at, v_lease_until, v_finished_at datetime(6);
    declare v_state varchar(20);
    declare v_worker_name varchar(200);
    declare v_lane, v_attempt smallint;
    declare v_claim_id, v_waits_for bigint;
    declare v_group_key varbinary(800);
    declare v_progress varchar(2000);
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    if p_message_id is null then
        call rowq.internal_refuse('message_id is required');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_queue_id);

    select m.enqueued_at, m.due_at, m.group_key into v_enqueued_at, v_due_at, v_group_key
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.queue_id = v_queue_id;

    if v_enqueued_at is not null then
        call rowq.internal_locate_messages(
            v_queue_id, p_message_id, v_enqueued_at, v_group_key, v_due_at, v_state, v_lane,
            v_attempt, v_claim_id, v_worker_name, v_leased_at, v_lease_until, v_finished_at,
            v_waits_for, v_progress
        );
        select m.message_id, v_state as state, v_lane div 2 as priority, v_attempt as attempt,
               coalesce(m.max_attempts, q.max_attempts) as max_attempts, m.message_type,
               m.headers, m.body, m.body_binary,
               convert(m.dedup_key using utf8mb4) as dedup_key, m.enqueued_at,
               v_due_at as due_at, v_claim_id as claim_id, v_worker_name as worker_name,
               v_lease_until as lease_until, v_finished_at as finished_at,
               if(d.message_id is null, m.last_error, d.last_error) as last_error,
               convert(m.group_key using utf8mb4) as group_key, v_waits_for as waits_for,
               m.expires_at, v_progress as progress, m.producer_name
        from rowq.message m force index (primary)
        straight_join rowq.queue q on q.queue_id = m.queue_id
        left join rowq.dead d force index (primary)
            on d.queue_id = m.queue_id
           and d.message_id = m.message_id
        where m.message_id = p_message_id
          and m.queue_id = v_queue_id;
    else
        select a.message_id, a.state, a.lane div 2 as priority, a.attempt,
               cast(null as signed) as max_attempts, a.message_type, a.headers, a.body,
               a.body_binary, convert(a.dedup_key using utf8mb4) as dedup_key, a.enqueued_at,
               v_due_at as due_at, v_claim_id as claim_id, v_worker_name as worker_name,
               v_lease_until as lease_until, a.finished_at, cast(null as char) as last_error,
               convert(a.group_key using utf8mb4) as group_key, v_waits_for as waits_for,
               cast(null as datetime(6)) as expires_at, v_progress as progress,
               a.producer_name
        from rowq.archive a force index (archive_message_ix)
        where a.queue_id = v_queue_id
          and a.message_id = p_message_id;
    end if;

    call rowq.internal_restore_session();
end//
delimiter ;
