drop procedure if exists rowq.publish;

delimiter //
create procedure rowq.publish(
    p_topic longtext,
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
    p_expire_seconds double,
    p_producer_name longtext
)
sql security definer
modifies sql data
comment 'Enqueue a message to each queue bound to a topic.'
begin
-- routine   publish
-- version   1
-- purpose   Enqueue a message to each queue bound to a topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue, in the order of queue names
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    declare v_owns_transaction, v_is_failed boolean;
    declare v_tries_left int default 5;
    declare v_error varchar(120);
    declare v_queues, v_results longtext;
    declare v_at, v_queue_id, v_max_body_length int;
    declare v_now datetime(6);
    declare v_message_id bigint;
    declare v_outcome varchar(20);
    declare v_joining varchar(2000);

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

            call rowq.internal_topic_error('topic', p_topic, false, v_error);
            if v_error is not null then
                call rowq.internal_refuse(v_error);
            end if;
            call rowq.internal_bound_queues(
                json_array(json_object('topic', p_topic)), v_queues
            );
            -- Check the arguments even if no queue is bound. Every queue must accept the body.
            select coalesce(min(j.max_body_length), 33554432) into v_max_body_length
            from json_table(v_queues, '$[*]' columns (max_body_length int path '$[2]')) j;
            call rowq.internal_message_error(
                p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
                p_run_at, p_dedup_key, p_max_attempts, p_group_key, null, null,
                p_expire_seconds, p_producer_name, v_max_body_length, v_error
            );
            if v_error is not null then
                call rowq.internal_refuse(v_error);
            end if;

            set v_at = 0, v_results = '[]', v_now = utc_timestamp(6);
            while v_at < json_length(v_queues) do
                set v_queue_id = json_extract(v_queues, concat('$[', v_at, '][0]'));
                call rowq.internal_store(
                    v_queue_id, 0, v_now, p_body, p_body_binary, coalesce(p_message_type, p_topic),
                    p_headers, coalesce(p_priority, 5),
                    coalesce(
                        p_run_at, v_now + interval round(p_delay_seconds * 1000000) microsecond
                    ),
                    p_dedup_key, p_max_attempts, p_group_key, null, null, null,
                    p_expire_seconds, p_producer_name, v_owns_transaction, v_message_id,
                    v_outcome, v_joining, v_is_failed
                );
                if v_joining is not null then
                    call rowq.internal_store_group_waiting(v_queue_id, concat('[', v_joining, ']'));
                end if;
                set v_results = json_array_append(
                        v_results, '$',
                        json_array(
                            json_unquote(json_extract(v_queues, concat('$[', v_at, '][1]'))),
                            v_message_id, v_outcome
                        )
                    ),
                    v_at = v_at + 1;
            end while;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select convert(unhex(j.queue_name) using utf8mb4) as queue_name, j.message_id, j.outcome
    from json_table(
        v_results,
        '$[*]' columns (
            position for ordinality,
            queue_name varchar(800) path '$[0]',
            message_id bigint path '$[1]',
            outcome varchar(20) path '$[2]'
        )
    ) j
    order by j.position;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
