drop procedure if exists rowq.release;

delimiter //
create procedure rowq.release(p_queue_name longtext, p_claim_id bigint, p_message_ids longtext)
sql security definer
modifies sql data
comment 'Return messages to the front of their priority without spending the attempt.'
begin
-- routine   release
-- version   1
-- purpose   Return messages to the front of their priority without spending the attempt.
-- promise   P08 P34 P37
-- locks     the queue, shared; the claim row; then new ready rows; for cancelled messages as
--           complete; new history rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_is_keyed boolean;
    declare v_queue_id, v_history_days int;
    declare v_worker_name varchar(200);
    declare v_leased_at datetime(6);
    declare v_messages, v_rest, v_cancel_ids, v_front longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_ids(p_message_ids);
            if p_claim_id is null then
                call rowq.internal_refuse('claim_id is required');
            end if;

            set v_queue_id = null;
            select q.queue_id, q.history_days into v_queue_id, v_history_days
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_queue_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            call rowq.internal_pop_claimed(
                v_queue_id, p_claim_id, p_message_ids, v_owns_transaction, v_is_keyed, v_messages,
                v_cancel_ids, v_worker_name, v_leased_at
            );
            set v_rest = v_messages;
            if v_cancel_ids is not null then
                call rowq.internal_end_cancelled(
                    v_queue_id, v_cancel_ids, v_owns_transaction, v_rest
                );
            end if;
            if v_rest is not null then
                call rowq.internal_as_front(v_rest, 1, v_front);
                call rowq.internal_push_ready(v_queue_id, v_front);
            end if;
            if v_history_days > 0 and v_messages is not null then
                call rowq.internal_push_history(
                    v_queue_id, p_claim_id, v_worker_name, v_leased_at, v_messages, 'released',
                    null, null, v_cancel_ids
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    call rowq.internal_outcomes(p_message_ids, v_messages, 'released', v_cancel_ids);

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
