drop procedure if exists rowq.internal_read_ties;

delimiter //
create procedure rowq.internal_read_ties(
    p_messages longtext,
    p_tokenless longtext,
    p_with_keys boolean,
    p_is_locking boolean,
    out p_ties longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_read_ties
-- purpose   Return what the end of these messages has to free, as [message_id, group key in hex or null, dedup key in hex or null, 1 if others wait for it]; null where that is nothing. p_tokenless are ids that have no token of their group, and p_with_keys is whether a dedup key counts. Of messages with keys there are no more than internal_next_slice takes.
-- locks     all of the message rows, if asked for
-- differs   PostgreSQL reads them as it deletes the messages
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_cut_at;
        resignal;
    end;

    -- MariaDB cuts what json_arrayagg returns to this length, which 300 messages stay below
    -- whatever their keys, and to that of a packet, below which a slice stays.
    if json_length(p_messages) > 300 and v_cut_at < @@max_allowed_packet then
        set session group_concat_max_len = @@max_allowed_packet;
    end if;
    if p_is_locking then
        -- Lock every row, so that nobody comes to wait for one of them any more. The limit keeps
        -- the engine from locking only those that the condition below wants. An old snapshot may
        -- not show a message yet, but a lock finds it.
        select json_arrayagg(json_array(
                   h.message_id, if(t.message_id is null, hex(h.group_key), null),
                   hex(h.dedup_key), h.has_successors
               ))
        into p_ties
        from (
            select m.message_id, m.group_key, m.dedup_key, m.has_successors
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */
        ) h
        left join (
            select distinct j.message_id
            from json_table(p_tokenless, '$[*]' columns (message_id bigint path '$')) j
        ) t on t.message_id = h.message_id
        where (h.group_key is not null and t.message_id is null)
           or (p_with_keys and h.dedup_key is not null)
           or h.has_successors;
    else
        select json_arrayagg(json_array(
                   m.message_id, if(t.message_id is null, hex(m.group_key), null),
                   hex(m.dedup_key), m.has_successors
               ))
        into p_ties
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        left join (
            select distinct j.message_id
            from json_table(p_tokenless, '$[*]' columns (message_id bigint path '$')) j
        ) t on t.message_id = m.message_id
        where (m.group_key is not null and t.message_id is null)
           or (p_with_keys and m.dedup_key is not null)
           or m.has_successors;
    end if;
    if @@group_concat_max_len <> v_cut_at then
        set session group_concat_max_len = v_cut_at;
    end if;
end//
delimiter ;
