drop procedure if exists rowq.internal_next_number;

delimiter //
create procedure rowq.internal_next_number(
    p_part_id int,
    p_lane smallint,
    out p_number bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_next_number
-- purpose   Take the next number of the claims or of the finished batches.
-- promise   P13
-- locks     for finished batches a new row, which is gone before anybody sees it
-- differs   elsewhere a sequence gives it
    if p_lane = -1 /* claim */ then
        set p_number = uuid_short() & 9007199254740991;
    else
        insert into rowq.finished (part_id, finished_at, state, messages)
        values (p_part_id, utc_timestamp(6), 'completed', '[]');
        set p_number = last_insert_id();
        delete f
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id
          and f.finish_id = p_number;
    end if;
end//
delimiter ;
