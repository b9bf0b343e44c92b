drop procedure if exists rowq.wait_for_result;

delimiter //
create procedure rowq.wait_for_result(
    p_queue_name longtext,
    p_message_id bigint,
    p_wait_seconds double
)
sql security definer
modifies sql data
comment 'Return like get_result, but wait until the message has ended or the time is up.'
begin
-- routine   wait_for_result
-- version   1
-- purpose   Return like get_result, but wait until the message has ended or the time is up.
-- promise   P17 P32
-- locks     none
-- commits   after each poll, so that no snapshot is held while it waits; requires autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   returns one JSON object, in a result set of one column
    declare v_wait_seconds double default coalesce(p_wait_seconds, 20);
    declare v_until datetime(6);
    declare v_pause double;
    declare v_answer longtext;
    -- If a transaction is open, "set transaction" fails with 1568.
    declare exit handler for 1568
    begin
        signal sqlstate '45713' set message_text =
            'RQ713 wrong_transaction_state: wait_for_result commits while it waits; '
            'call it outside a transaction';
    end;
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_check_range('wait_seconds', v_wait_seconds, 0, 3600);
    if @@autocommit = 0 then
        signal sqlstate '45713'
            set message_text =
                'RQ713 wrong_transaction_state: wait_for_result requires autocommit';
    end if;
    set transaction isolation level read committed;
    call rowq.internal_set_session(@@timestamp);
    set v_until = utc_timestamp(6) + interval round(v_wait_seconds * 1000000) microsecond;

    -- Each statement is its own transaction, so no snapshot is held during the sleep.
    polls: loop
        call rowq.internal_poll_result(p_queue_name, p_message_id, v_until, v_pause, v_answer);
        if v_pause is null then
            leave polls;
        end if;
        if sleep(v_pause) then
            signal sqlstate '70100'
                set mysql_errno = 1317, message_text = 'Query execution was interrupted';
        end if;
    end loop;

    select v_answer as answer;

    call rowq.internal_restore_session();
end//
delimiter ;
