drop procedure if exists rowq.internal_refuse_not_empty;

delimiter //
create procedure rowq.internal_refuse_not_empty(p_part_id int, p_queue_name longtext)
sql security definer
modifies sql data
begin
-- routine   internal_refuse_not_empty
-- purpose   Raise an error if a queue still has messages or an archive.
-- promise   P15
-- locks     the first row of each kind, shared
-- errors    RQ704
-- differs   no such helper elsewhere: part of drop_queue
    declare v_probe bigint;
    declare v_text varchar(128);

    -- A locking read finds the rows as they are now, even under an old snapshot. The order is that
    -- of internal_delete_queue, for the same reason.
    select b.message_id into v_probe
    from rowq.blocked b force index (primary)
    where b.part_id = p_part_id
    limit 1
    lock in share mode;
    if v_probe is null then
        select d.message_id into v_probe
        from rowq.delayed d force index (primary)
        where d.part_id = p_part_id and d.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select g.message_id into v_probe
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id and g.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select r.message_id into v_probe
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id and r.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select c.claim_id into v_probe
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id and c.claim_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select d.message_id into v_probe
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select f.finish_id into v_probe
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id and f.finish_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select a.message_id into v_probe
        from rowq.archive a
        where a.part_id = p_part_id
        limit 1
        lock in share mode;
    end if;

    if v_probe is not null then
        set v_text = left(
            concat('RQ704 queue_not_empty: ', p_queue_name, '; force drops all of it'), 128
        );
        signal sqlstate '45704' set message_text = v_text;
    end if;
end//
delimiter ;
