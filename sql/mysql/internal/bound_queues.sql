drop procedure if exists rowq.internal_bound_queues;

delimiter //
create procedure rowq.internal_bound_queues(p_messages longtext, out p_queues longtext)
sql security definer
modifies sql data
begin
-- routine   internal_bound_queues
-- purpose   Return the queues that are bound to the topics of messages, in the order of their names, and keep them from being dropped: [part_id, name in hex, max_body_length, places of the messages].
-- promise   P35
-- locks     the rows of their parts, shared; waits for a drop that is under way
    declare v_part_id, v_last_part_id, v_there, v_max_body_length, v_place int;
    declare v_queue_name varbinary(400);
    declare v_chunk longtext default '';
    declare v_is_end boolean default false;
    declare v_is_batch boolean default json_length(p_messages) > 1;
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    -- A pattern matches if the words before its first wildcard are the first ones of the topic, and
    -- if as many words as it has are like its own. No "%" swallows a dot there, because both sides
    -- have the same number of them. An array of as many zeros as a topic has heads counts these.
    -- No column is JSON or a long text, which would put the temporary tables on disk.
    declare each_match_of_one cursor for
        select q.part_id, q.queue_name, q.max_body_length, h.place
        from (
            select distinct b.part_id, t.place
            from json_table(
                p_messages,
                '$[*]' columns (place for ordinality, topic varchar(200) path '$.topic')
            ) t
            straight_join json_table(
                concat(
                    '[0,0',
                    repeat(',0', char_length(t.topic) - char_length(replace(t.topic, '.', ''))),
                    ']'
                ),
                '$[*]' columns (place for ordinality)
            ) n
            straight_join rowq.topic_binding b force index (topic_binding_head_ix)
                on b.literal_head = cast(substring_index(t.topic, '.', n.place - 1) as binary)
            where (
                b.has_rest
                or b.word_count
                    = char_length(t.topic) - char_length(replace(t.topic, '.', '')) + 1
            )
              and (
                  b.like_pattern is null
                  or cast(substring_index(t.topic, '.', b.word_count) as binary)
                      like b.like_pattern escape '!'
              )
        ) h
        straight_join rowq.queue q force index (primary) on q.part_id = h.part_id
        order by q.queue_name, h.place;
    -- Many topics beside many patterns that begin alike would be too many pairs to compare. But a
    -- topic matches at most one pattern of each shape. So each pattern that begins as a topic does
    -- is read once for its shape, however many topics there are; the patterns that a topic would
    -- match are then put together from its words, and looked up.
    declare each_match cursor for
        select q.part_id, q.queue_name, q.max_body_length, h.place
        from (
            select distinct b.part_id, m.place
            from (
                select t.place,
                       cast(cast(group_concat(
                           case substr(s.shape, w.place, 1)
                               when '1' then '*'
                               when '2' then '#'
                               else substring_index(
                                        substring_index(t.topic, '.', w.place), '.', -1
                                    )
                           end
                           order by w.place separator '.'
                       ) as char(200)) as binary) as topic_pattern
                from json_table(
                    p_messages,
                    '$[*]' columns (place for ordinality, topic varchar(200) path '$.topic')
                ) t
                straight_join json_table(
                    concat(
                        '[0,0',
                        repeat(',0', char_length(t.topic) - char_length(replace(t.topic, '.', ''))),
                        ']'
                    ),
                    '$[*]' columns (place for ordinality)
                ) n
                straight_join (
                    select distinct b.literal_head, b.shape
                    from (
                        select distinct
                               cast(substring_index(t.topic, '.', n.place - 1) as binary) as head
                        from json_table(
                            p_messages, '$[*]' columns (topic varchar(200) path '$.topic')
                        ) t
                        straight_join json_table(
                            concat(
                                '[0,0',
                                repeat(
                                    ',0',
                                    char_length(t.topic) - char_length(replace(t.topic, '.', ''))
                                ),
                                ']'
                            ),
                            '$[*]' columns (place for ordinality)
                        ) n
                    ) d
                    straight_join rowq.topic_binding b force index (topic_binding_head_ix)
                        on b.literal_head = d.head
                ) s on s.literal_head = cast(substring_index(t.topic, '.', n.place - 1) as binary)
                straight_join json_table(
                    concat('[0', repeat(',0', length(s.shape) - 1), ']'),
                    '$[*]' columns (place for ordinality)
                ) w
                where if(
                          right(s.shape, 1) = '2',
                          length(s.shape) - 2
                              <= char_length(t.topic) - char_length(replace(t.topic, '.', '')),
                          length(s.shape) - 1
                              = char_length(t.topic) - char_length(replace(t.topic, '.', ''))
                      )
                group by t.place, s.shape
            ) m
            straight_join rowq.topic_binding b force index (topic_binding_pattern_ix)
                on b.topic_pattern = m.topic_pattern
        ) h
        straight_join rowq.queue q force index (primary) on q.part_id = h.part_id
        order by q.queue_name, h.place;
    declare continue handler for not found set v_is_end = true;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_cut_at;
        resignal;
    end;
    set p_queues = '';

    if not v_is_batch then
        open each_match_of_one;
    else
        -- The engine cuts the result of group_concat to this length, which is the caller's.
        if v_cut_at < 1024 then
            set session group_concat_max_len = 1024;
        end if;
        open each_match;
        if v_cut_at < 1024 then
            set session group_concat_max_len = v_cut_at;
        end if;
    end if;
    matches: loop
        if v_is_batch then
            fetch each_match into v_part_id, v_queue_name, v_max_body_length, v_place;
        else
            fetch each_match_of_one into v_part_id, v_queue_name, v_max_body_length, v_place;
        end if;
        if v_is_end then
            leave matches;
        end if;
        if v_last_part_id is null or v_part_id <> v_last_part_id then
            -- Leave a queue out that was dropped since the look.
            set v_last_part_id = v_part_id, v_there = null;
            select p.part_id into v_there
            from rowq.part p
            where p.part_id = v_part_id
            lock in share mode;
            set v_is_end = false;
            if v_there is not null then
                set v_chunk = concat(
                    v_chunk, if(p_queues = '' and v_chunk = '', '[', ']],'),
                    '[', v_part_id, ',"', hex(v_queue_name), '",', v_max_body_length, ',[', v_place
                );
            end if;
        elseif v_there is not null then
            set v_chunk = concat(v_chunk, ',', v_place);
        end if;
        -- Build the text in pieces, because a long one is copied each time something is added.
        if length(v_chunk) > 5000 then
            set p_queues = concat(p_queues, v_chunk), v_chunk = '';
        end if;
    end loop;
    if v_is_batch then
        close each_match;
    else
        close each_match_of_one;
    end if;
    set p_queues = concat(p_queues, v_chunk);
    set p_queues = if(p_queues = '', '[]', concat(p_queues, ']]]'));
end//
delimiter ;
