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
-- purpose   Return p_count messages of a batch from p_first on, as JSON with commas between; null when one of several may be too long.
-- promise   P20
-- differs   elsewhere the most octets of an answer are no setting of the server
    declare v_length bigint;
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_cut_at;
        resignal;
    end;
    set p_json = null;

    -- No function makes a value that is longer than max_allowed_packet, and after one attempt
    -- MariaDB's json_object returns null for short messages too. So measure first, and never
    -- attempt it. JSON needs up to six bytes for one, and 500 bytes are enough for the keys and for
    -- what has no text.
    select 6 * max(
               coalesce(length(m.body), length(m.body_binary), 0) + coalesce(length(m.headers), 0)
               + coalesce(length(m.message_type), 0) + coalesce(length(m.last_error), 0)
           )
    into v_length
    from json_table(
        p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
    ) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    where j.place between p_first and p_first + p_count - 1;

    if p_count = 1 and v_length + 500 > @@max_allowed_packet then
        -- Measure the JSON itself only where a single message may be too long. to_base64 adds line
        -- breaks, which count here although they are removed later.
        select coalesce(
                   length(json_quote(m.body)), length(m.body) * 6, length(m.body_binary) * 1.352, 0
               )
               + coalesce(length(json_extract(m.headers, '$')), 0)
               + 6 * coalesce(length(m.message_type), 0) + 6 * coalesce(length(m.last_error), 0)
        into v_length
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.place = p_first;
    end if;

    if v_length + 500 <= @@max_allowed_packet then
        -- The engine cuts the result of group_concat to this length, and to max_allowed_packet.
        set session group_concat_max_len = @@max_allowed_packet;
        select group_concat(
                   json_object(
                       'claim_id', p_claim_id + 0, 'message_id', m.message_id, 'attempt', j.attempt,
                       'message_type', m.message_type, 'headers', json_extract(m.headers, '$'),
                       'body', m.body,
                       'body_binary', replace(to_base64(m.body_binary), '\n', ''),
                       'enqueued_at', date_format(m.enqueued_at, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                       'lease_until', date_format(p_lease_until, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                       'last_error', m.last_error
                   )
                   separator ','
               )
        into p_json
        from json_table(
            p_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.place between p_first and p_first + p_count - 1;
        set session group_concat_max_len = v_cut_at;
    end if;
end//
delimiter ;
