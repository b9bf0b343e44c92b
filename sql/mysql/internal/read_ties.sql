drop procedure if exists rowq.internal_read_ties;

delimiter //
create procedure rowq.internal_read_ties(
    p_messages longtext,
    p_tokenless longtext,
    p_with_keys boolean,
    p_is_locking boolean,
    out p_ties longtext,
    out p_held longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_read_ties
-- purpose   Return what the end of these messages has to free, as [message_id, group key in hex or null, dedup key in hex or null, 1 if others wait for it]; null where that is nothing. p_tokenless are ids that have no token of their group, and p_with_keys is whether a dedup key counts. p_held are those whose rows are to be locked, and that another transaction has locked; null where there is none. Of messages with keys there are no more than internal_next_slice takes.
-- locks     the message rows, if asked for, as internal_try_lock_messages
-- differs   PostgreSQL reads them as it deletes the messages
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    declare v_free longtext;
    declare v_more longtext;
    declare v_count, v_tied int default 0;
    declare v_is_second boolean default false;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_cut_at;
        resignal;
    end;
    set p_ties = null, p_held = null;

    -- MariaDB cuts what json_arrayagg returns to this length, which 300 messages stay below
    -- whatever their keys, and to that of a packet, below which a slice stays.
    if json_length(p_messages) > 300 and v_cut_at < @@max_allowed_packet then
        set session group_concat_max_len = @@max_allowed_packet;
    end if;
    if p_is_locking then
        -- Lock every row, so that nobody comes to wait for one of them any more. The limit keeps
        -- the engine from locking only some of them. An old snapshot may not show a message yet,
        -- but a lock finds it.
        set v_free = p_messages;
        locking: while v_free is not null do
            select json_arrayagg(if(h.is_tied, json_array(
                       h.message_id, if(h.has_token, hex(h.group_key), null),
                       hex(h.dedup_key), h.has_successors
                   ), null)),
                   sum(h.is_tied), count(*)
            into p_ties, v_tied, v_count
            from (
                select l.message_id, l.group_key, l.dedup_key, l.has_successors,
                       t.message_id is null as has_token,
                       (l.group_key is not null and t.message_id is null)
                       or (p_with_keys and l.dedup_key is not null)
                       or coalesce(l.has_successors, false) as is_tied
                from (
                    select m.message_id, m.group_key, m.dedup_key, m.has_successors
                    from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) j
                    straight_join rowq.message m force index (primary)
                        on m.message_id = j.message_id
                    limit 1000000
                    for update /*!80000 of m */ skip locked
                ) l
                left join (
                    select distinct j.message_id
                    from json_table(p_tokenless, '$[*]' columns (message_id bigint path '$')) j
                ) t on t.message_id = l.message_id
            ) h;
            if v_count = json_length(v_free) or v_is_second then
                leave locking;
            end if;
            call rowq.internal_try_lock_messages(p_messages, v_free, p_held);
            set v_is_second = true;
        end while;
        if coalesce(v_tied, 0) = 0 or v_free is null then
            set p_ties = null;
        end if;
    end if;
    if not p_is_locking or p_held is not null then
        select json_arrayagg(json_array(
                   m.message_id, if(t.message_id is null, hex(m.group_key), null),
                   hex(m.dedup_key), m.has_successors
               ))
        into v_more
        from json_table(
            coalesce(p_held, p_messages), '$[*]' columns (message_id bigint path '$[0]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        left join (
            select distinct j.message_id
            from json_table(p_tokenless, '$[*]' columns (message_id bigint path '$')) j
        ) t on t.message_id = m.message_id
        where (m.group_key is not null and t.message_id is null)
           or (p_with_keys and m.dedup_key is not null)
           or m.has_successors;
        set p_ties = if(
            p_ties is null, v_more, json_merge_preserve(p_ties, coalesce(v_more, '[]'))
        );
    end if;
    if @@group_concat_max_len <> v_cut_at then
        set session group_concat_max_len = v_cut_at;
    end if;
end//
delimiter ;
