drop procedure if exists rowq.queue_stats;

delimiter //
create procedure rowq.queue_stats(
    p_queue_name longtext,
    p_max_count int,
    p_after_queue_name longtext,
    p_max_queues int
)
sql security definer
modifies sql data
comment 'Return counts, age and settings of one queue or all.'
begin
-- routine   queue_stats
-- version   1
-- purpose   Return counts, age and settings of one queue or all.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_limit int default coalesce(p_max_count, 100000);
    declare v_queues_left int default coalesce(p_max_queues, 2147483647);
    declare v_queue_id int;
    declare v_last varbinary(400)
        default coalesce(left(cast(p_after_queue_name as binary), 400), '');
    declare v_ready, v_delayed, v_leased, v_dead, v_blocked bigint;
    declare v_oldest datetime(6);
    declare v_counts longtext;
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    call rowq.internal_check_range('max_count', v_limit, 1, 100000000);
    call rowq.internal_check_range('max_queues', p_max_queues, 1, 10000);
    if p_queue_name is not null then
        call rowq.internal_require_queue(p_queue_name, v_queue_id);
        set v_queues_left = 1;
    end if;

    queues: while v_queues_left > 0 do
        if p_queue_name is null then
            set v_queue_id = null;
            select q.queue_id, q.queue_name into v_queue_id, v_last
            from rowq.queue q
            where q.queue_name > v_last
            order by q.queue_name
            limit 1;
        end if;
        if v_queue_id is null then
            leave queues;
        end if;
        set v_queues_left = v_queues_left - 1;
        call rowq.internal_count_messages(
            v_queue_id, v_limit, v_ready, v_delayed, v_leased, v_dead, v_blocked
        );
        call rowq.internal_oldest_ready(v_queue_id, v_oldest);
        set v_counts = concat_ws(
            ',', v_counts,
            json_array(
                v_queue_id, v_ready, v_delayed, v_leased, v_dead, v_blocked,
                timestampdiff(microsecond, v_oldest, utc_timestamp(6)) / 1e6
            )
        );
    end while;

    select convert(q.queue_name using utf8mb4) as queue_name, q.paused_at is not null as is_paused,
           j.ready, j.`delayed`, j.leased, j.dead, j.blocked, j.oldest_ready_seconds,
           q.lease_seconds, q.max_attempts, q.backoff_base_seconds, q.backoff_factor,
           q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
           q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
           q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
           q.history_days
    from json_table(
        concat('[', v_counts, ']'),
        '$[*]' columns (
            queue_id int path '$[0]',
            ready bigint path '$[1]',
            `delayed` bigint path '$[2]',
            leased bigint path '$[3]',
            dead bigint path '$[4]',
            blocked bigint path '$[5]',
            oldest_ready_seconds double path '$[6]'
        )
    ) j
    straight_join rowq.queue q on q.queue_id = j.queue_id
    order by q.queue_name;

    call rowq.internal_restore_session();
end//
delimiter ;
