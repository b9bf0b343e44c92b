drop procedure if exists rowq.internal_store_grouped;

delimiter //
create procedure rowq.internal_store_grouped(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_store_grouped
-- purpose   Let new messages of groups be ready, or wait behind others: [message_id, lane, attempt, group key in hex, seq].
-- promise   P01 P05 P21 P22
-- locks     as internal_join_groups; new ready rows
-- differs   no such helper elsewhere: part of enqueue and enqueue_batch
    declare v_waiting longtext;
    call rowq.internal_join_groups(p_part_id, p_messages, v_waiting);

    insert into rowq.ready (part_id, lane, seq, message_id)
    select p_part_id, j.lane, j.seq, j.message_id
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            seq bigint path '$[4]'
        )
    ) j
    left join (
        select distinct w.message_id
        from json_table(v_waiting, '$[*]' columns (message_id bigint path '$')) w
    ) h on h.message_id = j.message_id
    where h.message_id is null;
end//
delimiter ;
