drop procedure if exists rowq.enqueue;

delimiter //
create procedure rowq.enqueue(
    p_queue_name longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_delay_seconds double,
    p_run_at datetime(6),
    p_dedup_key longtext,
    p_max_attempts int,
    p_group_key longtext,
    p_predecessor_ids longtext,
    p_on_predecessor_dead longtext,
    p_expire_seconds double,
    p_producer_name longtext
)
sql security definer
modifies sql data
comment 'Enqueue a message.'
begin
-- routine   enqueue
-- version   1
-- purpose   Enqueue a message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     new rows; the queue, shared; the rows of predecessors, without waiting; with a dedup
--           key, waits for open enqueues of it; with a group key, waits for sessions that open or
--           close the group
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction, v_is_plain, v_is_failed boolean;
    declare v_tries_left int default 5;
    declare v_error varchar(120);
    declare v_queue_id, v_max_body_length, v_usual_length int;
    declare v_now datetime(6);
    declare v_message_id bigint;
    declare v_outcome varchar(20);
    declare v_joining varchar(2000);
    declare v_links, v_held longtext;

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

            set v_queue_id = null;
            select q.queue_id, q.max_body_length,
                   least(
                       q.max_body_length,
                       (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
                   )
            into v_queue_id, v_max_body_length, v_usual_length
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);

            -- Fast path: a plain message has only a text body that internal_message_error accepts.
            -- The lane of the default priority is always open.
            set v_is_plain = v_queue_id is not null
                and coalesce(length(p_body) <= v_usual_length, false)
                and locate(x'ED', cast(p_body as binary)) = 0
                and coalesce(p_priority, 5) = 5
                and coalesce(
                    p_body_binary, p_message_type, p_headers, p_delay_seconds, p_run_at,
                    p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
                    p_on_predecessor_dead, p_expire_seconds, p_producer_name
                ) is null;
            if not v_is_plain then
                call rowq.internal_message_error(
                    p_body, p_body_binary, p_message_type, p_headers, p_priority,
                    p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
                    p_predecessor_ids, p_on_predecessor_dead, p_expire_seconds, p_producer_name,
                    v_max_body_length, v_error
                );
                if v_error is not null then
                    call rowq.internal_refuse(v_error);
                end if;
                if v_queue_id is null then
                    call rowq.internal_refuse_queue(p_queue_name);
                end if;
            end if;

            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            set v_now = utc_timestamp(6);
            if v_is_plain then
                insert into rowq.message (queue_id, enqueued_at, body)
                values (v_queue_id, v_now, p_body);
                set v_message_id = last_insert_id(), v_outcome = 'enqueued';
                insert into rowq.ready (queue_id, lane, seq, message_id, is_keyed)
                values (
                    v_queue_id, 11, timestampdiff(microsecond, '1970-01-01', v_now),
                    v_message_id, false
                );
            else
                call rowq.internal_store(
                    v_queue_id, 0, v_now, p_body, p_body_binary, p_message_type, p_headers,
                    coalesce(p_priority, 5),
                    coalesce(
                        p_run_at, v_now + interval round(p_delay_seconds * 1000000) microsecond
                    ),
                    p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids, null,
                    p_on_predecessor_dead, p_expire_seconds, p_producer_name, v_owns_transaction,
                    v_message_id, v_outcome, v_joining, v_is_failed
                );
                if v_joining is not null then
                    call rowq.internal_store_group_waiting(v_queue_id, concat('[', v_joining, ']'));
                end if;
                if v_is_failed then
                    call rowq.internal_read_links(
                        concat('[[', v_message_id, ']]'), null, true, false, v_links, v_held
                    );
                    call rowq.internal_release_dedup_keys(v_queue_id, v_links);
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_message_id as message_id, v_outcome as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
