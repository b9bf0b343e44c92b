drop procedure if exists rowq.internal_note_fault;

delimiter //
create procedure rowq.internal_note_fault(p_part_id int, p_fault varchar(500))
sql security definer
modifies sql data
begin
-- routine   internal_note_fault
-- purpose   Keep the error with which maintain has failed for a queue, for health; null forgets it. In the caller's transaction it does nothing.
-- promise   P19
-- locks     a meta row
-- commits   its own transaction where the caller has none; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 1;
    declare v_name varchar(100) default concat('maintain_fault.', p_part_id);
    declare exit handler for sqlexception
    begin
        call rowq.internal_roll_back(v_owns_transaction, null, v_tries_left);
    end;

    call rowq.internal_begin_work(v_owns_transaction);
    if v_owns_transaction and p_fault is null then
        delete from rowq.meta
        where name = v_name;
    elseif v_owns_transaction then
        insert into rowq.meta (name, value, changed_at)
        values (v_name, p_fault, utc_timestamp(6))
        on duplicate key update
            changed_at = if(value = values(value), changed_at, values(changed_at)),
            value = values(value);
    end if;
    call rowq.internal_commit_work(v_owns_transaction);
end//
delimiter ;
