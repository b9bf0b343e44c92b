drop procedure if exists rowq.retry_later;

delimiter //
create procedure rowq.retry_later(
    p_queue_name longtext,
    p_claim_id bigint,
    p_message_ids longtext,
    p_delay_seconds double,
    p_error longtext
)
sql security definer
modifies sql data
comment 'Return messages for another attempt after a delay; without an attempt left they are dead.'
begin
-- routine   retry_later
-- version   1
-- purpose   Return messages for another attempt after a delay; without an attempt left they are dead.
-- promise   P08 P10 P34 P37 P47
-- locks     the queue, shared; the claim row; then message rows, skipping locked ones; delayed,
--           ready, dead or dedup rows; for cancelled messages as complete; new history rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_is_keyed boolean;
    declare v_queue_id, v_max_attempts, v_history_days int;
    declare v_worker_name varchar(200);
    declare v_leased_at datetime(6);
    declare v_messages, v_rest, v_cancel_ids, v_alive, v_dead, v_delayed longtext;

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
            if locate(x'ED', cast(p_error as binary)) > 0 then
                call rowq.internal_check_text('error', p_error);
            end if;
            call rowq.internal_check_range('delay_seconds', p_delay_seconds, 0, 315360000);

            set v_queue_id = null;
            select q.queue_id, q.max_attempts, q.history_days
            into v_queue_id, v_max_attempts, v_history_days
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

            set v_delayed = null, v_dead = null;
            if v_rest is not null then
                call rowq.internal_split_by_attempts(
                    v_rest, v_max_attempts, v_owns_transaction, v_alive, v_dead
                );
                if v_alive is not null then
                    call rowq.internal_back_off(v_queue_id, v_alive, p_delay_seconds, v_delayed);
                    call rowq.internal_push_delayed(v_queue_id, v_delayed, false, p_error);
                end if;
                if v_dead is not null then
                    call rowq.internal_push_dead(
                        v_queue_id, v_dead, p_error, v_owns_transaction
                    );
                end if;
            end if;
            if v_history_days > 0 and v_messages is not null then
                call rowq.internal_push_history(
                    v_queue_id, p_claim_id, v_worker_name, v_leased_at, v_messages, 'retrying',
                    p_error, v_dead, v_cancel_ids
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if p_message_ids is null then
        select json_arrayagg(j.message_id) into p_message_ids
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j;
    end if;
    select a.message_id,
           case
               when r.message_id is not null then 'retrying'
               when d.message_id is not null then 'dead'
               when c.message_id is not null then 'cancelled'
               else 'stale'
           end as outcome,
           timestamp'1970-01-01 00:00:00' + interval r.due_at microsecond as due_at
    from json_table(
        p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
    ) a
    left join (
        select distinct j.message_id, j.due_at
        from json_table(
            v_delayed, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
    ) r on r.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
    ) d on d.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_cancel_ids, '$[*]' columns (message_id bigint path '$')) j
    ) c on c.message_id = a.message_id
    order by a.place;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
