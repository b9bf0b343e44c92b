drop procedure if exists rowq.dequeue_wait;

delimiter //
create procedure rowq.dequeue_wait(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int,
    p_wait_seconds double
)
sql security definer
modifies sql data
begin
-- routine   dequeue_wait
-- version   1
-- purpose   As dequeue_fast, but wait until something is ready or the time is up; fewer messages where they are long.
-- promise   P03 P17
-- locks     as dequeue_fast; a row of lane while it sleeps, passed over when locked
-- commits   after each look, so that no snapshot is held while it waits; needs autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array, in a result set of one column
    declare v_claim_id bigint;
    declare v_lease_until, v_until datetime(6);
    declare v_messages, v_front, v_json longtext;
    declare v_part_id int;
    declare v_is_own boolean;
    declare v_wait_seconds double default coalesce(p_wait_seconds, 20);
    declare v_pause double default 0.02;
    declare v_length bigint;
    -- As in internal_begin: refused with 1568 where a transaction is open.
    declare exit handler for 1568
    begin
        signal sqlstate '45713'
            set message_text = 'RQ713 wrong_transaction_state: dequeue_wait commits while it waits';
    end;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin();
        resignal;
    end;

    call rowq.internal_check_range('wait_seconds', v_wait_seconds, 0, 3600);
    if @@autocommit = 0 then
        signal sqlstate '45713'
            set message_text = 'RQ713 wrong_transaction_state: dequeue_wait needs autocommit';
    end if;
    set transaction isolation level read committed;

    looks: loop
        call rowq.internal_dequeue(
            p_queue_name, coalesce(p_batch_size, 1), p_worker_name, p_lease_seconds,
            v_claim_id, v_lease_until, v_messages
        );
        if v_until is null then
            call rowq.internal_require_queue(p_queue_name, v_part_id);
            -- Not before the first look, which puts the clock right should the caller have set it.
            set v_until = utc_timestamp(6)
                + interval round(v_wait_seconds * 1000000) microsecond;
        end if;
        if v_messages is not null or utc_timestamp(6) >= v_until then
            leave looks;
        end if;
        call rowq.internal_wait(v_part_id, v_until, v_pause);
    end loop;

    -- MariaDB cuts JSON arrays to this length, as it does group_concat.
    set v_length = @@group_concat_max_len;
    set session group_concat_max_len = 1073741824;

    select json_arrayagg(json_object(
               'claim_id', v_claim_id + 0, 'message_id', h.message_id, 'attempt', h.attempt,
               'message_type', h.message_type, 'headers', json_extract(h.headers, '$'),
               'body', h.body,
               'body_binary', replace(to_base64(h.body_binary), '\n', ''),
               'enqueued_at', date_format(h.enqueued_at, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
               'lease_until', date_format(v_lease_until, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
               'last_error', h.last_error
           ))
    into v_json
    from (
        select m.message_id, j.attempt, m.message_type, m.headers, m.body, m.body_binary,
               m.enqueued_at, m.last_error
        from json_table(
            v_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        order by j.place
        limit 1000
    ) h;
    set session group_concat_max_len = v_length;

    if v_messages is not null and coalesce(length(v_json) >= @@max_allowed_packet, true) then
        -- The engine cuts a value at this length, or makes none: give everything back.
        call rowq.internal_require_queue(p_queue_name, v_part_id);
        call rowq.internal_begin(v_is_own);
        call rowq.internal_take(v_part_id, v_claim_id, null, v_messages);
        call rowq.internal_to_front(v_messages, 1, v_front);
        call rowq.internal_to_ready(v_part_id, v_front);
        call rowq.internal_commit(v_is_own);
        call rowq.internal_refuse(
            'the batch is longer than max_allowed_packet; take fewer, or use dequeue_fast'
        );
    end if;
    select v_json as messages;

    if @rowq_pinned then
        call rowq.internal_unpin();
    end if;
end//
delimiter ;
