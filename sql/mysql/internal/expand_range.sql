drop procedure if exists rowq.internal_expand_range;

delimiter //
create procedure rowq.internal_expand_range(
    p_first_id bigint,
    p_last_id bigint,
    p_lane smallint,
    p_attempt smallint,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_expand_range
-- purpose   Return the messages of a claim that holds a range of ids as an array of [message_id, lane, attempt].
-- promise   P02
-- differs   no such helper elsewhere: other engines keep arrays
    -- An array of as many zeros counts to the end of the range. A recursive query would end at a
    -- limit that a session may set. In JSON, MariaDB quotes a parameter, but not a sum.
    select json_arrayagg(json_array(p_first_id + j.place - 1, p_lane + 0, p_attempt + 0))
    into p_messages
    from json_table(
        concat('[0', repeat(',0', p_last_id - p_first_id), ']'),
        '$[*]' columns (place for ordinality)
    ) j;
    if p_messages is null then
        -- No function returns a text that is longer than max_allowed_packet.
        call rowq.internal_refuse(
            'max_allowed_packet is too low for so many messages in one call'
        );
    end if;
end//
delimiter ;
