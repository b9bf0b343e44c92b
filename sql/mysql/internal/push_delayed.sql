drop procedure if exists rowq.internal_push_delayed;

delimiter //
create procedure rowq.internal_push_delayed(p_part_id int, p_delayed longtext, p_error longtext)
sql security definer
modifies sql data
begin
-- routine   internal_push_delayed
-- purpose   Let messages wait for their time; those that are due are ready at once.
-- promise   P10 P11 P36
-- locks     message rows, tried only; new delayed and ready rows
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_due longtext;
    declare v_expiring int;

    -- A row that a producer holds stays as it is: cancel does not find that message until its time
    -- has come. Without a limit MySQL would merge what is selected into the update, and wait.
    update (
        select x.message_id, j.due_at
        from json_table(
            p_delayed, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.message x force index (primary) on x.message_id = j.message_id
        limit 1000000
        for update /*!80000 of x */ skip locked
    ) h
    straight_join rowq.message m force index (primary) on m.message_id = h.message_id
    set m.last_error = left(p_error, 2000),
        m.due_at = v_epoch + interval h.due_at microsecond;

    insert into rowq.delayed (part_id, due_at, message_id, lane, attempt)
    select p_part_id, v_epoch + interval j.due_at microsecond, j.message_id, j.lane, j.attempt
    from json_table(
        p_delayed,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            due_at bigint path '$[3]'
        )
    ) j
    where v_epoch + interval j.due_at microsecond > v_now;

    select count(*) into v_expiring
    from json_table(p_delayed, '$[*]' columns (message_id bigint path '$[0]')) j
    left join rowq.message m force index (primary) on m.message_id = j.message_id
    where m.expires_at is not null
       or m.message_id is null;
    if v_expiring > 0 then
        call rowq.internal_note_expiry(p_part_id, p_delayed, null);
    end if;

    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_due
    from json_table(
        p_delayed,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            due_at bigint path '$[3]'
        )
    ) j
    where v_epoch + interval j.due_at microsecond <= v_now;
    if v_due is not null then
        call rowq.internal_push_ready(p_part_id, v_due);
    end if;
end//
delimiter ;
