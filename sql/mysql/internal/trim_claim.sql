drop procedure if exists rowq.internal_trim_claim;

delimiter //
create procedure rowq.internal_trim_claim(
    p_part_id int,
    p_claim_id bigint,
    p_lease_until datetime(6),
    inout p_messages longtext,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_trim_claim
-- purpose   Return a new claim's messages as one JSON array, and those that go beyond max_allowed_packet to their places.
-- promise   P02 P05 P10
-- locks     the claim row and ready rows, locked by the caller; what internal_push_dead locks
-- commits   never; call it in the transaction that took the messages
-- errors    RQ711
-- differs   elsewhere the most octets of an answer are no setting of the server
    declare v_all, v_some, v_dead longtext;
    declare v_count int default json_length(p_messages);
    declare v_first int default 1;
    declare v_last int default 0;
    declare v_size int default 100;
    set p_json = null, v_all = p_messages;

    -- Read the messages in pieces, so that those which do not fit are not read in vain. A piece
    -- that is too long is halved, down to one message.
    pieces: while v_last < v_count do
        call rowq.internal_messages_json(
            p_claim_id, p_lease_until, v_all, v_last + 1, least(v_size, v_count - v_last), v_some
        );
        -- A text that the engine has cut is up to three bytes shorter than the limit, because it
        -- cuts between characters. So leave ten bytes of room.
        if length(v_some) + coalesce(length(p_json), 0) + 10 < @@max_allowed_packet then
            set p_json = concat_ws(',', p_json, v_some),
                v_last = v_last + least(v_size, v_count - v_last);
            -- The next piece has as many messages as half of the room holds, if they are as long as
            -- those before.
            set v_size = greatest(
                v_size,
                (v_last - v_first + 1) * (@@max_allowed_packet / length(p_json) - 1) div 2
            );
        elseif v_size > 1 then
            set v_size = greatest(least(v_size, v_count - v_last) div 2, 1);
        elseif p_json is not null then
            leave pieces;
        elseif @@max_allowed_packet < @@global.max_allowed_packet then
            call rowq.internal_refuse(
                'the next message is longer than max_allowed_packet of this session: connect again'
            );
        else
            -- The server accepted this message when max_allowed_packet was larger. Declare it dead,
            -- because it must not block the others.
            set v_last = v_last + 1, v_first = v_last + 1, v_size = 100;
            select json_arrayagg(json_array(j.message_id, j.lane, j.attempt - 1)) into v_dead
            from json_table(
                v_all,
                '$[*]' columns (
                    place for ordinality,
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    attempt smallint path '$[2]'
                )
            ) j
            where j.place = v_last;
            call rowq.internal_push_dead(
                p_part_id, v_dead,
                concat(
                    'not delivered: as JSON it is longer than max_allowed_packet, ',
                    @@max_allowed_packet, '; raise that on the server, then reset the message'
                ),
                true
            );
        end if;
    end while;
    set p_json = concat('[', p_json, ']');

    if v_first > 1 or v_last < v_count then
        call rowq.internal_return_ready(p_part_id, v_all, v_last);
        set p_messages = null;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt, j.seq)) into p_messages
        from json_table(
            v_all,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]',
                seq bigint path '$[3]'
            )
        ) j
        where j.place between v_first and v_last;
        if p_messages is null then
            delete c
            from rowq.claim c force index (primary)
            where c.part_id = p_part_id
              and c.claim_id = p_claim_id;
        else
            update rowq.claim c force index (primary)
            set c.messages = p_messages
            where c.part_id = p_part_id
              and c.claim_id = p_claim_id;
        end if;
    end if;
end//
delimiter ;
