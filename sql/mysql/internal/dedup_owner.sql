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
-- version   1
-- purpose   The unfinished message that has a dedup key, or null.
-- promise   P12
-- locks     the dedup row, shared
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    set p_message_id = null;
    if not p_is_there then
        select d.message_id into p_message_id
        from rowq.dedup d force index (primary)
        where d.part_id = p_part_id
          and d.dedup_key = p_dedup_key;
    end if;
    if p_is_there or p_message_id is not null then
        -- An old snapshot may show what is gone, or not yet what is there.
        set p_message_id = null;
        select d.message_id into p_message_id
        from rowq.dedup d force index (primary)
        where d.part_id = p_part_id
          and d.dedup_key = p_dedup_key
        lock in share mode;
    end if;
end//
delimiter ;
