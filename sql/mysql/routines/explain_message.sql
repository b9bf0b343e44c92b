drop procedure if exists rowq.explain_message;

delimiter //
create procedure rowq.explain_message(p_queue_name longtext, p_message_id bigint)
sql security definer
modifies sql data
comment 'Return the reasons why a message is not delivered now, and what would change them.'
begin
-- routine   explain_message
-- version   1
-- purpose   Return the reasons why a message is not delivered now, and what would change them.
-- promise   P42
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message in an open transaction is behind or next, because only a lock shows it
    declare v_queue_id int;
    declare v_now datetime(6);
    declare v_enqueued_at, v_due_at, v_leased_at, v_lease_until, v_finished_at datetime(6);
    declare v_expires_at, v_paused_at, v_first datetime(6);
    declare v_state, v_ended varchar(20);
    declare v_worker_name varchar(200);
    declare v_lane, v_attempt smallint;
    declare v_claim_id, v_waits_for bigint;
    declare v_group_key varbinary(800);
    declare v_progress varchar(2000);
    declare v_rows longtext default '[]';
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
    set v_now = utc_timestamp(6);

    select q.paused_at into v_paused_at
    from rowq.queue q
    where q.queue_id = v_queue_id;
    select m.enqueued_at, m.due_at, m.group_key, m.expires_at
    into v_enqueued_at, v_due_at, v_group_key, v_expires_at
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.queue_id = v_queue_id;
    if v_enqueued_at is not null then
        call rowq.internal_locate_messages(
            v_queue_id, p_message_id, v_enqueued_at, v_group_key, v_due_at, v_state, v_lane,
            v_attempt, v_claim_id, v_worker_name, v_leased_at, v_lease_until, v_finished_at,
            v_waits_for, v_progress
        );
    else
        select a.state into v_ended
        from rowq.archive a force index (archive_message_ix)
        where a.queue_id = v_queue_id
          and a.message_id = p_message_id
        limit 1;
        if v_ended is null then
            select r.state into v_ended
            from rowq.result r force index (primary)
            where r.queue_id = v_queue_id
              and r.message_id = p_message_id
              and r.message_id > 0;
        end if;
    end if;
    if v_state in ('completed', 'cancelled', 'expired') then
        set v_ended = v_state;
    end if;

    if v_ended is not null then
        set v_rows = json_array_append(v_rows, '$', json_array(
            'ended', null, null, null, null, concat('it has ended: ', v_ended)
        ));
    elseif v_state is null then
        set v_rows = json_array_append(v_rows, '$', json_array(
            'unknown', null, null, null, null,
            'it is not in the queue: not committed, rolled back, or ended with nothing kept'
        ));
    elseif v_state = 'dead' then
        set v_rows = json_array_append(v_rows, '$', json_array(
            'dead', null, null, null, null, 'it is dead; reset makes it ready'
        ));
    elseif v_state = 'leased' then
        set v_rows = json_array_append(v_rows, '$', json_array(
            case
                when v_claim_id is null then 'held'
                when v_lease_until <= v_now then 'lease_expired'
                else 'leased'
            end,
            cast(v_lease_until as char), null, v_claim_id, v_worker_name,
            case
                when v_claim_id is null then 'another session is moving it in an open transaction'
                when v_lease_until <= v_now
                    then 'its lease has expired; the next maintain returns it'
                else 'a worker holds it until the worker finishes it or its lease expires'
            end
        ));
    else
        if v_paused_at is not null then
            set v_rows = json_array_append(v_rows, '$', json_array(
                'paused', null, null, null, null,
                'the queue is paused; resume_queue ends the pause'
            ));
        end if;
        if v_state = 'blocked' then
            call rowq.internal_explain_blocked(v_queue_id, p_message_id, v_group_key, v_rows);
        end if;
        if v_state = 'delayed' or v_state = 'blocked' and v_due_at > v_now then
            set v_rows = json_array_append(v_rows, '$', json_array(
                if(v_due_at > v_now, 'delayed', 'overdue'), cast(v_due_at as char), null, null,
                null,
                if(
                    v_due_at > v_now, 'it waits for its time; alter_message changes it',
                    'its time has come; the next maintain makes it ready'
                )
            ));
        end if;
        if v_state = 'ready' then
            call rowq.internal_explain_ready(
                v_queue_id, p_message_id, v_enqueued_at, v_lane, v_rows
            );
        end if;
        if v_expires_at is not null then
            set v_rows = json_array_append(v_rows, '$', json_array(
                'expires', cast(v_expires_at as char), null, null, null,
                'maintain expires it from this time on'
            ));
        end if;
    end if;

    select min(j.clears_at) into v_first
    from json_table(v_rows, '$[*]' columns (clears_at datetime(6) path '$[1]')) j;
    if v_first < v_now - interval 5 second then
        set v_rows = json_array_append(v_rows, '$', json_array(
            'no_maintain', null, null, null, null,
            'maintain is late by more than 5 seconds; run a worker, or call maintain'
        ));
    end if;

    select j.reason, j.clears_at, j.blocking_id, j.claim_id, j.worker_name, j.detail
    from json_table(
        v_rows, '$[*]' columns (
            position for ordinality,
            reason varchar(20) path '$[0]',
            clears_at datetime(6) path '$[1]',
            blocking_id bigint path '$[2]',
            claim_id bigint path '$[3]',
            worker_name varchar(200) path '$[4]',
            detail varchar(500) path '$[5]'
        )
    ) j
    order by j.position;

    call rowq.internal_restore_session();
end//
delimiter ;
