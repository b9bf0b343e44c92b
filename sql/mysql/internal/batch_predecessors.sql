drop procedure if exists rowq.internal_batch_predecessors;

delimiter //
create procedure rowq.internal_batch_predecessors(
    p_place int,
    p_stored longtext,
    p_positions longtext,
    inout p_predecessor_ids longtext,
    out p_own_id bigint,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_batch_predecessors
-- purpose   Add to a message's predecessors those that it names by their places in the batch. p_stored is a row of [1 if it is new and has not failed, message_id], 20 digits each, of the messages before it; p_own_id is the newest such one.
-- promise   P15
-- differs   part of internal_block_batch on PostgreSQL
    declare v_is_good boolean;
    declare v_low, v_high decimal(20);
    declare v_ids longtext;
    set p_own_id = null, p_fault = null;

    call rowq.internal_is_id_list(p_positions, v_is_good);
    if v_is_good then
        select min(j.place), max(j.place) into v_low, v_high
        from json_table(p_positions, '$[*]' columns (place decimal(20) path '$')) j;
    end if;
    if not v_is_good or v_low < 1 or v_high >= p_place then
        set p_fault =
            'predecessor_positions must be a flat list of places before the message''s own';
    elseif v_low is not null then
        select json_arrayagg(cast(substring(h.entry, 2) as signed)),
               max(if(left(h.entry, 1) = '1', cast(substring(h.entry, 2) as signed), null))
        into v_ids, p_own_id
        from (
            select substring(p_stored, (j.place - 1) * 20 + 1, 20) as entry
            from json_table(p_positions, '$[*]' columns (place int path '$')) j
            limit 1000000
        ) h;
        set p_predecessor_ids = json_merge_preserve(coalesce(p_predecessor_ids, '[]'), v_ids);
    end if;
end//
delimiter ;
