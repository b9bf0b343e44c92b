drop procedure if exists rowq.internal_back_off;

delimiter //
create procedure rowq.internal_back_off(
    p_part_id int,
    p_messages longtext,
    p_delay_seconds double,
    out p_delayed longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_back_off
-- purpose   Compute when failed messages are due again: [message_id, lane, attempt, due_at in microseconds].
-- promise   P10
    declare v_base, v_factor, v_cap, v_jitter double;
    declare v_now bigint default timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));

    select q.backoff_base_seconds, q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter
    into v_base, v_factor, v_cap, v_jitter
    from rowq.queue q
    where q.part_id = p_part_id;

    select json_arrayagg(json_array(
               j.message_id, j.lane div 2 * 2 + 1, j.attempt,
               v_now + cast(1000000 * coalesce(
                   p_delay_seconds,
                   least(v_cap, v_base * pow(v_factor, least(j.attempt - 1, 60)))
                   * (1 - v_jitter * rand())
               ) as signed)
           ))
    into p_delayed
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
end//
delimiter ;
