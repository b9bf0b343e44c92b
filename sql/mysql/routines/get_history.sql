drop procedure if exists rowq.get_history;

delimiter //
create procedure rowq.get_history(p_queue_name longtext, p_message_id bigint)
sql security definer
modifies sql data
comment 'Return the attempts of a message, oldest first, including the current lease.'
begin
-- routine   get_history
-- version   1
-- purpose   Return the attempts of a message, oldest first, including the current lease.
-- promise   P37
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

    -- Read the current lease first. An attempt that ends after this read is in the history and not
    -- returned twice.
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
    end if;

    select h.attempt, h.worker_name, h.leased_at, h.ended_at, h.outcome, h.error
    from (
        select k.attempt, k.worker_name, k.leased_at, k.ended_at, k.outcome, k.error,
               k.claim_id
        from rowq.history k force index (history_message_ix)
        where k.queue_id = v_queue_id
          and k.message_id = p_message_id
          and k.message_id > 0
        union all
        select v_attempt, v_worker_name, v_leased_at, null, null, null, v_claim_id
        from dual
        where v_claim_id is not null
          and not exists (
              select 1
              from rowq.history k force index (history_message_ix)
              where k.queue_id = v_queue_id
                and k.message_id = p_message_id
                and k.claim_id = v_claim_id
          )
    ) h
    order by h.ended_at is null, h.ended_at, h.claim_id;

    call rowq.internal_restore_session();
end//
delimiter ;
