drop procedure if exists rowq.internal_poll_result;

delimiter //
create procedure rowq.internal_poll_result(
    p_queue_name longtext,
    p_message_id bigint,
    p_until datetime(6),
    inout p_pause double,
    out p_answer longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_poll_result
-- purpose   Look once for wait_for_result: return the row of get_result as JSON object, else the pause before the next look; p_pause is passed in as the one before this look.
-- promise   P32
-- errors    RQ701 RQ711
    declare v_part_id int;
    declare v_result_seconds, v_left double;
    declare v_is_last boolean default utc_timestamp(6) >= p_until;
    declare v_state varchar(20);
    declare v_finished_at datetime(6);
    declare v_result longtext;
    declare v_last_error varchar(2000);
    set p_answer = null;

    -- Most looks need no more than the result, which is found by its key.
    select q.part_id, q.result_seconds, r.state, r.finished_at, r.result, r.last_error
    into v_part_id, v_result_seconds, v_state, v_finished_at, v_result, v_last_error
    from rowq.queue q
    left join rowq.result r force index (primary)
        on r.part_id = q.part_id
       and r.message_id = p_message_id
       and r.message_id > 0
    where q.queue_name = cast(p_queue_name as binary);
    if v_part_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    elseif p_message_id is null then
        call rowq.internal_refuse('message_id is missing');
    end if;

    -- The first look and the last one ask where the message is, too.
    if v_state is null and (p_pause is null or v_is_last) then
        call rowq.internal_read_result(
            v_part_id, p_message_id, v_state, v_finished_at, v_result, v_last_error
        );
        set v_is_last = v_is_last or v_state is null;
    end if;
    if v_is_last or v_finished_at is not null then
        if v_state is not null then
            set p_answer = json_object(
                'message_id', p_message_id + 0, 'state', v_state,
                'finished_at', date_format(v_finished_at, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                'result', json_extract(v_result, '$'), 'last_error', v_last_error
            );
        end if;
        set p_pause = null;
    else
        if v_result_seconds = 0 then
            call rowq.internal_refuse('the queue keeps no results: its result_seconds is 0');
        end if;
        set v_left = timestampdiff(microsecond, utc_timestamp(6), p_until) / 1000000,
            p_pause = least(coalesce(p_pause * 2, 0.02), 0.25, greatest(v_left, 0));
    end if;
end//
delimiter ;
