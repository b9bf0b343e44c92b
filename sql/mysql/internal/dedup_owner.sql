drop procedure if exists rowq.internal_dedup_owner;

delimiter //
create procedure rowq.internal_dedup_owner(
    p_part_id int,
    p_dedup_key varbinary(800),
    p_is_there boolean,
    out p_message_id bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_dedup_owner
-- purpose   Return the unfinished message that has a dedup key, or null.
-- promise   P12
-- locks     the dedup row, shared; one that internal_release_dedup_keys has left is deleted,
--           waiting for another producer that holds it
    declare v_ended_id bigint;
    set p_message_id = null;
    if not p_is_there then
        select d.message_id into p_message_id
        from rowq.dedup d force index (primary)
        where d.part_id = p_part_id
          and d.dedup_key = p_dedup_key;
    end if;
    if p_is_there or p_message_id is not null then
        select d.message_id into v_ended_id
        from rowq.dedup d force index (primary)
        where d.part_id = p_part_id
          and d.dedup_key = concat(x'FF', p_dedup_key);
        if v_ended_id is not null then
            delete from rowq.dedup
            where part_id = p_part_id
              and dedup_key in (p_dedup_key, concat(x'FF', p_dedup_key))
              and message_id = v_ended_id;
        end if;

        -- Read again with a lock, because an old snapshot may show a row that is gone, or not yet
        -- show one that is there.
        set p_message_id = null;
        select d.message_id into p_message_id
        from rowq.dedup d force index (primary)
        where d.part_id = p_part_id
          and d.dedup_key = p_dedup_key
        lock in share mode;
    end if;
end//
delimiter ;
