drop procedure if exists rowq.find_message;

delimiter //
create procedure rowq.find_message(p_queue_name longtext, p_dedup_key longtext)
sql security definer
modifies sql data
comment 'Return the unfinished message with a dedup key, as get_message does.'
begin
-- routine   find_message
-- version   1
-- purpose   Return the unfinished message with a dedup key, as get_message does.
-- promise   P12 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   may return a message that ends during the call
    declare v_queue_id int;
    declare v_message_id bigint;
    declare v_key varbinary(800);
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    if p_dedup_key is null then
        call rowq.internal_refuse('dedup_key is required');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_queue_id);

    -- No key is longer, and no message has the id 0.
    if char_length(p_dedup_key) <= 200 then
        set v_key = p_dedup_key;
        select d.message_id into v_message_id
        from rowq.dedup d force index (primary)
        where d.queue_id = v_queue_id
          and d.dedup_key = v_key;
    end if;
    call rowq.get_message(p_queue_name, coalesce(v_message_id, 0));
end//
delimiter ;
