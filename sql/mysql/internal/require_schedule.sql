drop procedure if exists rowq.internal_require_schedule;

delimiter //
create procedure rowq.internal_require_schedule(p_part_id int, p_schedule_name longtext)
sql security definer
modifies sql data
begin
-- routine   internal_require_schedule
-- purpose   Hold a schedule to the end of the transaction; raise an error if there is none.
-- promise   P15
-- locks     the schedule row
-- errors    RQ702 RQ711
    declare v_part_id int;
    declare v_text varchar(128);
    if p_schedule_name is null then
        call rowq.internal_refuse('schedule_name is missing');
    end if;
    select s.part_id into v_part_id
    from rowq.schedule s force index (primary)
    where s.part_id = p_part_id
      and s.schedule_name = cast(p_schedule_name as binary);
    -- Lock only what is there, because under the caller's repeatable read a row that is not there
    -- would be locked as a gap. Look again, because it may have been dropped meanwhile.
    if v_part_id is not null then
        set v_part_id = null;
        select s.part_id into v_part_id
        from rowq.schedule s force index (primary)
        where s.part_id = p_part_id
          and s.schedule_name = cast(p_schedule_name as binary)
        for update;
    end if;
    if v_part_id is null then
        set v_text = concat('RQ702 schedule_not_found: ', left(p_schedule_name, 100));
        signal sqlstate '45702' set message_text = v_text;
    end if;
end//
delimiter ;
