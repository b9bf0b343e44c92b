drop procedure if exists rowq.alter_message;

delimiter //
create procedure rowq.alter_message(
    p_queue_name longtext,
    p_message_id bigint,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_delay_seconds double,
    p_run_at datetime(6),
    p_max_attempts int,
    p_expire_seconds double
)
sql security definer
modifies sql data
comment 'Change a waiting or dead message; null leaves a value unchanged.'
begin
-- routine   alter_message
-- version   1
-- purpose   Change a waiting or dead message; null leaves a value unchanged.
-- promise   P15 P20 P21 P22 P36 P39
-- locks     the queue, shared; a blocked, dead, delayed, group_waiting or ready row, skipped if
--           locked; the message row: waits for a producer that has just named it as a predecessor;
--           new delayed, ready and expiry rows; as internal_release_group_slots
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   a dequeue in an open transaction with an older snapshot returns the message as it was;
--           PostgreSQL raises 40001 there
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_error varchar(120);
    declare v_queue_id, v_max_body_length int;
    declare v_place, v_outcome varchar(20);
    declare v_group_key varbinary(800);
    declare v_lane, v_attempt smallint;
    declare v_seq bigint;
    declare v_now, v_was_due_at, v_due_at datetime(6);
    declare v_finished longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_errno = 1205 and (v_owns_transaction or not @@innodb_rollback_on_timeout) then
                    -- A wait ended with innodb_lock_wait_timeout. If it rolls back the caller's
                    -- whole transaction, the caller gets the server's error.
                    signal sqlstate '45705' set message_text =
                        'RQ705 queue_busy: an open transaction has locked a message; retry';
                end if;
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);

            if p_message_id is null then
                call rowq.internal_refuse('message_id is required');
            end if;
            if coalesce(
                   p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
                   p_run_at, p_max_attempts, p_expire_seconds
               ) is null then
                call rowq.internal_refuse('at least one value to change is required');
            end if;
            set v_max_body_length = null;
            select q.max_body_length into v_max_body_length
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            call rowq.internal_message_error(
                p_body, p_body_binary, p_message_type, p_headers, coalesce(p_priority, 5),
                p_delay_seconds, p_run_at, null, p_max_attempts, null, null, null,
                nullif(p_expire_seconds, 0), null, v_max_body_length, v_error
            );
            if v_error is not null then
                call rowq.internal_refuse(v_error);
            end if;
            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);

            set v_now = utc_timestamp(6);
            set v_due_at = greatest(
                coalesce(
                    p_run_at, v_now + interval round(p_delay_seconds * 1000000) microsecond
                ),
                v_now
            );
            call rowq.internal_lock_waiting(
                v_queue_id, p_message_id, v_place, v_group_key, v_lane, v_attempt, v_seq,
                v_was_due_at
            );
            if v_place = 'dead' and v_due_at is not null then
                set v_outcome = 'dead', v_due_at = null;
            elseif v_place is not null then
                if coalesce(
                       p_body, p_body_binary, p_message_type, p_headers, p_max_attempts,
                       p_expire_seconds
                   ) is not null then
                    update rowq.message m
                    set m.body         = if(p_body_binary is null, coalesce(p_body, m.body), null),
                        m.body_binary  = if(
                            p_body is null, coalesce(p_body_binary, m.body_binary), null
                        ),
                        m.message_type = coalesce(p_message_type, m.message_type),
                        m.headers      = coalesce(p_headers, m.headers),
                        m.max_attempts = coalesce(p_max_attempts, m.max_attempts),
                        m.expires_at   = if(
                            p_expire_seconds is null, m.expires_at,
                            v_now + interval
                                round(nullif(p_expire_seconds, 0) * 1000000) microsecond
                        )
                    where m.message_id = p_message_id;
                end if;
                call rowq.internal_alter_waiting(
                    v_queue_id, p_message_id, v_place, v_group_key, v_lane, v_attempt, v_seq,
                    v_was_due_at, p_priority, v_now, coalesce(p_expire_seconds > 0, false),
                    v_owns_transaction, v_due_at
                );
                set v_outcome = 'altered';
            else
                -- A message without a body is unknown, and so is a finished message that waits for
                -- the archiver. All others are leased.
                set v_outcome = 'not_found', v_due_at = null;
                select 'leased' into v_outcome
                from rowq.message m force index (primary)
                where m.message_id = p_message_id
                  and m.queue_id = v_queue_id;
                call rowq.internal_finished_of(v_queue_id, json_array(p_message_id), v_finished);
                if v_finished is not null then
                    set v_outcome = 'not_found';
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_message_id as message_id, v_outcome as outcome, v_due_at as due_at;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
