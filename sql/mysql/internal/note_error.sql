drop procedure if exists rowq.internal_note_error;

delimiter //
create procedure rowq.internal_note_error(p_messages longtext, p_error longtext)
sql security definer
modifies sql data
begin
-- routine   internal_note_error
-- purpose   Store the error that messages failed with that are tried again, but of those whose rows a producer holds.
-- promise   P10
-- locks     message rows, tried only
-- differs   the last error stands beside the body, and not where the message waits
    -- Without a limit MySQL would merge what is selected into the update, and wait.
    update (
        select x.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message x force index (primary) on x.message_id = j.message_id
        limit 1000000
        for update /*!80000 of x */ skip locked
    ) h
    straight_join rowq.message m force index (primary) on m.message_id = h.message_id
    set m.last_error = left(p_error, 2000);
end//
delimiter ;
