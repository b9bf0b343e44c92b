drop procedure if exists rowq.health;

delimiter //
create procedure rowq.health()
sql security definer
modifies sql data
comment 'Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.'
begin
-- routine   health
-- version   1
-- purpose   Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   checks of horizon, purge and numbers are this engine's
    declare v_checks, v_more longtext;
    declare v_part_id, v_last int default 0;
    declare v_message_id, v_claim_id bigint default 0;
    declare v_next_id, v_next_claim bigint;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    call rowq.internal_health_server(v_checks);
    call rowq.internal_next_numbers(v_next_id, v_next_claim);
    queues: loop
        set v_part_id = null;
        select q.part_id into v_part_id
        from rowq.queue q force index (primary)
        where q.part_id > v_last
        order by q.part_id
        limit 1;
        if v_part_id is null then
            leave queues;
        end if;
        set v_last = v_part_id;
        call rowq.internal_health_queue(v_part_id, v_more);
        set v_checks = concat_ws(',', v_checks, v_more);
        call rowq.internal_newest_numbers(
            v_part_id, v_next_id, v_next_claim, v_message_id, v_claim_id
        );
    end loop;
    call rowq.internal_health_numbers(v_message_id, v_claim_id, v_checks);

    select j.check_name, convert(q.queue_name using utf8mb4) as queue_name,
           case
               when j.value >= j.critical then 'critical'
               when j.value >= j.warning then 'warning'
               else 'ok'
           end as status,
           j.value, j.detail
    from json_table(
        concat('[', v_checks, ']'),
        '$[*]' columns (
            check_name varchar(100) path '$[0]',
            part_id int path '$[1]',
            value double path '$[2]',
            warning double path '$[3]',
            critical double path '$[4]',
            detail varchar(500) path '$[5]'
        )
    ) j
    left join rowq.queue q on q.part_id = j.part_id
    where j.part_id is null
       or q.part_id is not null
    order by j.check_name, q.queue_name;

    call rowq.internal_unpin_session();
end//
delimiter ;
