drop procedure if exists rowq.internal_delete_messages;

delimiter //
create procedure rowq.internal_delete_messages(
    p_part_id int,
    p_messages longtext,
    p_held longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_delete_messages
-- purpose   Delete messages, whose rows the caller has locked but for those in p_held; leave these, which have ended all the same, to maintain.
-- promise   P04 P26
-- locks     message rows; new recheck rows
    if p_held is null then
        delete m
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
    else
        -- A producer names one as a predecessor, perhaps, and may never commit.
        delete m
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct x.message_id
            from json_table(p_held, '$[*]' columns (message_id bigint path '$[0]')) x
        ) h on h.message_id = j.message_id
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where h.message_id is null;
        call rowq.internal_recheck_later(
            p_part_id, json_extract(p_held, '$[*][0]'), json_extract(p_held, '$[*][0]'), false
        );
    end if;
end//
delimiter ;
