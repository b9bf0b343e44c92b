drop procedure if exists rowq.internal_withdraw;

delimiter //
create procedure rowq.internal_withdraw(
    p_part_id int,
    p_message_ids longtext,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_withdraw
-- purpose   Cancel those messages that no worker holds, and return them; null where there is none.
-- promise   P03 P12 P22
-- locks     as internal_pop_waiting, then as internal_finish
    declare v_archive_days int;
    declare v_tokenless, v_keyless longtext;

    call rowq.internal_pop_waiting(
        p_part_id, p_message_ids, p_messages, v_tokenless, v_keyless
    );
    if p_messages is not null then
        select q.archive_days into v_archive_days
        from rowq.queue q
        where q.part_id = p_part_id;
        call rowq.internal_finish(
            p_part_id, v_archive_days, true, p_messages, v_tokenless, v_keyless,
            p_owns_transaction, 'cancelled'
        );
    end if;
end//
delimiter ;
