drop procedure if exists rowq.get_result;

delimiter //
create procedure rowq.get_result(p_queue_name longtext, p_message_id bigint)
sql security definer
modifies sql data
comment 'Return the outcome and result of a message, or its state if unfinished.'
begin
-- routine   get_result
-- version   1
-- purpose   Return the outcome and result of a message, or its state if unfinished.
-- promise   P32
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_queue_id int;
    declare v_state varchar(20);
    declare v_finished_at datetime(6);
    declare v_result longtext;
    declare v_last_error varchar(2000);
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    if p_message_id is null then
        call rowq.internal_refuse('message_id is required');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_queue_id);
    call rowq.internal_read_result(
        v_queue_id, p_message_id, v_state, v_finished_at, v_result, v_last_error
    );

    select p_message_id as message_id, v_state as state, v_finished_at as finished_at,
           json_extract(v_result, '$') as result, v_last_error as last_error
    from dual
    where v_state is not null;

    call rowq.internal_restore_session();
end//
delimiter ;
