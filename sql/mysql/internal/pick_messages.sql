drop procedure if exists rowq.internal_pick_messages;

delimiter //
create procedure rowq.internal_pick_messages(
    p_messages longtext,
    p_places longtext,
    out p_picked longtext,
    out p_picked_places longblob
)
sql security definer
modifies sql data
begin
-- routine   internal_pick_messages
-- purpose   Return the messages at these places of a batch as a batch of their own; and the places once more, five digits each, in its order, or '' where they are all.
-- promise   P20
-- differs   no such helper elsewhere: part of publish_batch
    declare v_place int;
    declare v_message, v_chunk longtext;
    declare v_is_end boolean default false;
    -- The limit makes MySQL sort what was cast to text, as in internal_store_batch.
    declare each_message cursor for
        select h.place, h.message
        from (
            select j.place, cast(j.message as char) as message
            from json_table(
                p_messages, '$[*]' columns (place for ordinality, message json path '$')
            ) j
            straight_join (
                select distinct w.place
                from json_table(p_places, '$[*]' columns (place int path '$')) w
            ) wanted on wanted.place = j.place
            limit 10000
        ) h
        order by h.place;
    declare continue handler for not found set v_is_end = true;
    set p_picked = '[', p_picked_places = '', v_chunk = '';

    if json_length(p_places) = json_length(p_messages) then
        set p_picked = p_messages;
    else
        open each_message;
        messages: loop
            fetch each_message into v_place, v_message;
            if v_is_end then
                leave messages;
            end if;
            -- Build the text in pieces, because a long one is copied each time something is added.
            set v_chunk = concat(v_chunk, if(p_picked_places = '', '', ','), v_message),
                p_picked_places = concat(p_picked_places, lpad(v_place, 5, '0'));
            if length(v_chunk) > 100000 then
                set p_picked = concat(p_picked, v_chunk), v_chunk = '';
            end if;
        end loop;
        close each_message;
        set p_picked = concat(p_picked, v_chunk, ']');
    end if;
end//
delimiter ;
