drop procedure if exists rowq.internal_check_unbound;

delimiter //
create procedure rowq.internal_check_unbound(p_messages longtext, p_queues longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_unbound
-- purpose   Refuse the messages of publish_batch where one is bad that no queue is bound to, as internal_store_batch does with the others.
-- promise   P15 P20
-- errors    RQ711
    declare v_place int;
    declare v_message, v_body, v_message_type, v_headers, v_dedup_key, v_group_key longtext;
    declare v_predecessor_ids, v_positions, v_on_predecessor_dead longtext;
    declare v_body_binary longblob;
    declare v_priority, v_max_attempts int;
    declare v_delay_seconds, v_expire_seconds double;
    declare v_run_at datetime(6);
    declare v_fault varchar(120);
    declare v_is_end boolean default false;
    declare each_message cursor for
        select j.place, cast(j.message as char) as message
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, message json path '$')
        ) j
        left join (
            select distinct q.place
            from json_table(
                p_queues, '$[*]' columns (nested path '$[3][*]' columns (place int path '$'))
            ) q
        ) bound on bound.place = j.place
        where bound.place is null;
    declare continue handler for not found set v_is_end = true;

    open each_message;
    messages: loop
        fetch each_message into v_place, v_message;
        if v_is_end then
            leave messages;
        end if;
        call rowq.internal_parse_message(
            v_message, true, 33554432, v_body, v_body_binary, v_message_type, v_headers,
            v_priority, v_delay_seconds, v_run_at, v_dedup_key, v_max_attempts, v_group_key,
            v_predecessor_ids, v_positions, v_on_predecessor_dead, v_expire_seconds, v_fault
        );
        if v_fault is not null then
            call rowq.internal_refuse(concat(left(v_fault, 80), ' (message ', v_place, ')'));
        end if;
        set v_is_end = false;
    end loop;
    close each_message;
end//
delimiter ;
