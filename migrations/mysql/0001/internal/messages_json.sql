drop procedure if exists rowq.internal_messages_json;

delimiter //
create procedure rowq.internal_messages_json(
    p_claim_id bigint,
    p_lease_until datetime(6),
    p_messages longtext,
    p_first int,
    p_count int,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_messages_json
-- version   1
-- purpose   Messages p_first and following of a batch, p_count of them, as JSON with commas between; null when one does not fit.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    declare v_whole int;
    declare v_length bigint default @@group_concat_max_len;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_length;
        resignal;
    end;
    -- The engine cuts what group_concat makes to this length, and to max_allowed_packet.
    set session group_concat_max_len = 1073741824;

    -- No function makes a value that is longer than max_allowed_packet, and json_object of MariaDB
    -- would be null from then on, for short messages too. So the length is known beforehand: JSON
    -- has up to six bytes for one, and who may not fit is measured; base64 has line breaks at first.
    select group_concat(h.message separator ','), count(h.message)
    into p_json, v_whole
    from (
        select if(
            (
                coalesce(length(m.body), length(m.body_binary), 0) + coalesce(length(m.headers), 0)
                + coalesce(length(m.message_type), 0) + coalesce(length(m.last_error), 0)
            ) * 6 + 500 > @@max_allowed_packet
            and coalesce(
                    length(json_quote(m.body)), length(m.body) * 6, length(m.body_binary) * 1.352, 0
                )
                + coalesce(length(json_extract(m.headers, '$')), 0) + 500
                + (coalesce(length(m.message_type), 0) + coalesce(length(m.last_error), 0)) * 6
                > @@max_allowed_packet,
            null,
            json_object(
                'claim_id', p_claim_id + 0, 'message_id', m.message_id, 'attempt', j.attempt,
                'message_type', m.message_type, 'headers', json_extract(m.headers, '$'),
                'body', m.body,
                'body_binary', replace(to_base64(m.body_binary), '\n', ''),
                'enqueued_at', date_format(m.enqueued_at, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                'lease_until', date_format(p_lease_until, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                'last_error', m.last_error
            )
        ) as message
        from json_table(
            p_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.place between p_first and p_first + p_count - 1
        order by j.place
        limit 1000
    ) h;
    set session group_concat_max_len = v_length;
    if v_whole < p_count then
        set p_json = null;
    end if;
end//
delimiter ;
