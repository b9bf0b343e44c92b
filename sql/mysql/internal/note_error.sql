drop procedure if exists rowq.internal_note_error;

delimiter //
create procedure rowq.internal_note_error(p_messages longtext, p_error longtext)
sql security definer
modifies sql data
begin
-- routine   internal_note_error
-- purpose   Store the error that messages failed with.
-- promise   P10
-- locks     message rows
-- differs   the last error stands beside the body, and not where the message waits
    update json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    set m.last_error = left(p_error, 2000);
end//
delimiter ;
