-- Topics: publish, and the patterns that queues are bound to.
--
-- A published message goes once to every queue with a matching pattern, in the order of queue
-- names, in one transaction. An index finds patterns by their prefix, the words before the first
-- wildcard. A batch reads once which shapes of patterns exist, and looks up one pattern per shape
-- instead of comparing every pair. Arguments are checked even if no queue is bound.
--
--   bind_topic, unbind_topic, publish, ... -> topic_error
--   publish, publish_batch -> bound_queues
--   publish_batch -> check_unbound, pick_messages, store_published
--
-- Writes message, ready. Only reads queue_lock, queue.

drop procedure if exists rowq.internal_topic_error;

delimiter //
create procedure rowq.internal_topic_error(
    p_name longtext,
    p_topic longtext,
    p_is_pattern boolean,
    out p_error varchar(120)
)
sql security definer
no sql
begin
-- purpose   Return the error in a topic or pattern, or null.
    -- The byte count refuses non-ASCII letters that match a-z when default_regex_flags ignores
    -- case.
    set p_error = case
        when p_topic is null
            then concat(p_name, ' is required')
        when char_length(p_topic) > 200
            then concat(p_name, ' must be at most 200 characters')
        when p_is_pattern
             and (
                 length(p_topic) > char_length(p_topic)
                 or p_topic not regexp '\\A(([A-Za-z0-9_\\-]+|[*])[.])*([A-Za-z0-9_\\-]+|[*#])\\z'
             )
            then concat(
                p_name, ' must be words of letters, digits, _, - or *, separated by dots, # last'
            )
        when not p_is_pattern
             and (
                 length(p_topic) > char_length(p_topic)
                 or p_topic not regexp '\\A[A-Za-z0-9_\\-]+([.][A-Za-z0-9_\\-]+)*\\z'
             )
            then concat(p_name, ' must be words of letters, digits, _ and -, separated by dots')
    end;
end//
delimiter ;

drop procedure if exists rowq.internal_bound_queues;

delimiter //
create procedure rowq.internal_bound_queues(p_messages longtext, out p_queues longtext)
sql security definer
modifies sql data
begin
-- purpose   Return the queues that are bound to topics, by name; protect them from drop_queue.
-- locks     their rows in queue_lock, shared; waits for a running drop_queue
--
-- A queue is [queue_id, name in hex, max_body_length, positions of its messages].
    declare v_queue_id, v_last_queue_id, v_found_id, v_max_body_length, v_position int;
    declare v_queue_name varbinary(400);
    declare v_chunk longtext default '';
    declare v_is_end boolean default false;
    declare v_is_batch boolean default json_length(p_messages) > 1;
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    -- A pattern matches if its prefix begins the topic, and if the same number of words of the
    -- topic is like the pattern. "%" cannot match a dot: both sides have the same number of dots.
    -- An array with a zero per prefix of the topic generates their ordinals. JSON or long text
    -- columns would put the temporary tables on disk.
    declare each_match_of_one cursor for
        select q.queue_id, q.queue_name, q.max_body_length, h.position
        from (
            select distinct b.queue_id, t.position
            from json_table(
                p_messages,
                '$[*]' columns (position for ordinality, topic varchar(200) path '$.topic')
            ) t
            straight_join json_table(
                concat(
                    '[0,0',
                    repeat(',0', char_length(t.topic) - char_length(replace(t.topic, '.', ''))),
                    ']'
                ),
                '$[*]' columns (position for ordinality)
            ) n
            straight_join rowq.topic_binding b force index (topic_binding_prefix_ix)
                on b.literal_prefix = cast(substring_index(t.topic, '.', n.position - 1) as binary)
            where (
                b.matches_rest
                or b.word_count
                    = char_length(t.topic) - char_length(replace(t.topic, '.', '')) + 1
            )
              and (
                  b.like_pattern is null
                  or cast(substring_index(t.topic, '.', b.word_count) as binary)
                      like b.like_pattern escape '!'
              )
        ) h
        straight_join rowq.queue q force index (primary) on q.queue_id = h.queue_id
        order by q.queue_name, h.position;
    -- Many topics times many patterns are too many pairs to compare, but a topic matches at most
    -- one pattern of each shape. So read the shapes below each prefix once, build the patterns that
    -- a topic would match from its words, and look them up.
    declare each_match cursor for
        select q.queue_id, q.queue_name, q.max_body_length, h.position
        from (
            select distinct b.queue_id, m.position
            from (
                select t.position,
                       cast(cast(group_concat(
                           case substr(s.shape, w.position, 1)
                               when '1' then '*'
                               when '2' then '#'
                               else substring_index(
                                        substring_index(t.topic, '.', w.position), '.', -1
                                    )
                           end
                           order by w.position separator '.'
                       ) as char(200)) as binary) as topic_pattern
                from json_table(
                    p_messages,
                    '$[*]' columns (position for ordinality, topic varchar(200) path '$.topic')
                ) t
                straight_join json_table(
                    concat(
                        '[0,0',
                        repeat(',0', char_length(t.topic) - char_length(replace(t.topic, '.', ''))),
                        ']'
                    ),
                    '$[*]' columns (position for ordinality)
                ) n
                straight_join (
                    select distinct b.literal_prefix, b.shape
                    from (
                        select distinct
                               cast(
                                   substring_index(t.topic, '.', n.position - 1) as binary
                               ) as prefix
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
                            '$[*]' columns (position for ordinality)
                        ) n
                    ) d
                    straight_join rowq.topic_binding b force index (topic_binding_prefix_ix)
                        on b.literal_prefix = d.prefix
                ) s
                    on s.literal_prefix
                        = cast(substring_index(t.topic, '.', n.position - 1) as binary)
                straight_join json_table(
                    concat('[0', repeat(',0', length(s.shape) - 1), ']'),
                    '$[*]' columns (position for ordinality)
                ) w
                where if(
                          right(s.shape, 1) = '2',
                          length(s.shape) - 2
                              <= char_length(t.topic) - char_length(replace(t.topic, '.', '')),
                          length(s.shape) - 1
                              = char_length(t.topic) - char_length(replace(t.topic, '.', ''))
                      )
                group by t.position, s.shape
            ) m
            straight_join rowq.topic_binding b force index (topic_binding_pattern_ix)
                on b.topic_pattern = m.topic_pattern
        ) h
        straight_join rowq.queue q force index (primary) on q.queue_id = h.queue_id
        order by q.queue_name, h.position;
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
        -- The caller's value truncates the results of group_concat.
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
            fetch each_match into v_queue_id, v_queue_name, v_max_body_length, v_position;
        else
            fetch each_match_of_one into v_queue_id, v_queue_name, v_max_body_length, v_position;
        end if;
        if v_is_end then
            leave matches;
        end if;
        if v_last_queue_id is null or v_queue_id <> v_last_queue_id then
            -- Skip a queue that was dropped since the cursor was opened.
            set v_last_queue_id = v_queue_id, v_found_id = null;
            select p.queue_id into v_found_id
            from rowq.queue_lock p
            where p.queue_id = v_queue_id
            lock in share mode;
            set v_is_end = false;
            if v_found_id is not null then
                set v_chunk = concat(
                    v_chunk, if(p_queues = '' and v_chunk = '', '[', ']],'),
                    '[', v_queue_id, ',"', hex(v_queue_name), '",', v_max_body_length, ',[',
                    v_position
                );
            end if;
        elseif v_found_id is not null then
            set v_chunk = concat(v_chunk, ',', v_position);
        end if;
        -- Build the text in chunks: each concat copies the whole text.
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

drop procedure if exists rowq.internal_check_unbound;

delimiter //
create procedure rowq.internal_check_unbound(p_messages longtext, p_queues longtext)
sql security definer
modifies sql data
begin
-- purpose   Refuse a batch of publish_batch with an invalid message that no queue is bound to.
-- errors    RQ711
    declare v_position int;
    declare v_message longtext;
    declare v_error varchar(120);
    declare v_is_end boolean default false;
    declare each_message cursor for
        select j.position, cast(j.message as char) as message
        from json_table(
            p_messages, '$[*]' columns (position for ordinality, message json path '$')
        ) j
        left join (
            select distinct q.position
            from json_table(
                p_queues, '$[*]' columns (nested path '$[3][*]' columns (position int path '$'))
            ) q
        ) bound on bound.position = j.position
        where bound.position is null;
    declare continue handler for not found set v_is_end = true;

    open each_message;
    messages: loop
        fetch each_message into v_position, v_message;
        if v_is_end then
            leave messages;
        end if;
        call rowq.internal_parsed_error(v_message, v_error);
        if v_error is not null then
            call rowq.internal_refuse(concat(left(v_error, 80), ' (message ', v_position, ')'));
        end if;
        set v_is_end = false;
    end loop;
    close each_message;
end//
delimiter ;

drop procedure if exists rowq.internal_pick_messages;

delimiter //
create procedure rowq.internal_pick_messages(
    p_messages longtext,
    p_positions longtext,
    out p_picked longtext,
    out p_picked_positions longblob
)
sql security definer
modifies sql data
begin
-- purpose   Return the messages at some positions of a batch as a new batch.
--
-- p_picked_positions has their positions, 5 digits each, or '' if the whole batch was picked.
    declare v_position int;
    declare v_message, v_chunk longtext;
    declare v_is_end boolean default false;
    -- The limit makes MySQL sort the texts by reference, as in internal_store_batch.
    declare each_message cursor for
        select h.position, h.message
        from (
            select j.position, cast(j.message as char) as message
            from json_table(
                p_messages, '$[*]' columns (position for ordinality, message json path '$')
            ) j
            straight_join (
                select distinct w.position
                from json_table(p_positions, '$[*]' columns (position int path '$')) w
            ) wanted on wanted.position = j.position
            limit 10000
        ) h
        order by h.position;
    declare continue handler for not found set v_is_end = true;
    set p_picked = '[', p_picked_positions = '', v_chunk = '';

    if json_length(p_positions) = json_length(p_messages) then
        set p_picked = p_messages;
    else
        open each_message;
        messages: loop
            fetch each_message into v_position, v_message;
            if v_is_end then
                leave messages;
            end if;
            -- Build the text in chunks: each concat copies the whole text.
            set v_chunk = concat(v_chunk, if(p_picked_positions = '', '', ','), v_message),
                p_picked_positions = concat(p_picked_positions, lpad(v_position, 5, '0'));
            if length(v_chunk) > 100000 then
                set p_picked = concat(p_picked, v_chunk), v_chunk = '';
            end if;
        end loop;
        close each_message;
        set p_picked = concat(p_picked, v_chunk, ']');
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_store_published;

delimiter //
create procedure rowq.internal_store_published(
    p_queue_id int,
    p_messages longtext,
    p_positions longblob,
    out p_results longtext
)
sql security definer
modifies sql data
begin
-- purpose   Store plain published messages in two inserts; return as internal_store_batch, or null.
-- locks     new rows; the auto-increment lock of message during the insert
-- differs   the counterpart of internal_store_plain; null if a message is not plain
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_count, v_plain_count int;
    declare v_first_id bigint;
    declare v_ordinals longtext;
    set p_results = null;

    -- As in internal_store_plain. internal_store_batch handles topics with other characters or
    -- escapes.
    if @@global.innodb_autoinc_lock_mode < 2 and length(p_messages) < 1000000 then
        select count(*),
               sum(json_length(j.message) = 2
                   and left(j.body, 1) = '"'
                   and length(j.body) <= least(
                       q.max_body_length,
                       (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
                   )
                   and length(j.topic) between 3 and 202
                   and char_length(j.topic) = length(j.topic)
                   and j.topic regexp '\\A"[A-Za-z0-9_\\-]+([.][A-Za-z0-9_\\-]+)*"\\z')
        into v_count, v_plain_count
        from rowq.queue q
        straight_join json_table(
            p_messages,
            '$[*]' columns (
                message json path '$',
                body json path '$.body',
                topic json path '$.topic'
            )
        ) j
        where q.queue_id = p_queue_id;
    end if;

    if v_count = v_plain_count then
        insert into rowq.message (queue_id, enqueued_at, message_type, body)
        select p_queue_id, v_now + interval j.position microsecond, json_unquote(j.topic),
               json_unquote(j.body)
        from json_table(
            p_messages,
            '$[*]' columns (
                position for ordinality,
                body json path '$.body',
                topic json path '$.topic'
            )
        ) j;
        set v_first_id = last_insert_id(),
            v_ordinals = concat('[0', repeat(',0', v_count - 1), ']');
        insert into rowq.ready (queue_id, lane, seq, message_id, is_keyed)
        select p_queue_id, 11,
               timestampdiff(microsecond, '1970-01-01', v_now) + j.position,
               v_first_id + (j.position - 1) * @@auto_increment_increment,
               false
        from json_table(v_ordinals, '$[*]' columns (position for ordinality)) j;
        select json_arrayagg(
                   json_array(
                       coalesce(
                           nullif(substring(p_positions, j.position * 5 - 4, 5), '') + 0, j.position
                       ),
                       v_first_id + (j.position - 1) * @@auto_increment_increment,
                       'enqueued'
                   )
               )
        into p_results
        from json_table(v_ordinals, '$[*]' columns (position for ordinality)) j;
    end if;
end//
delimiter ;
