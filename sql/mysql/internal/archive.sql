drop procedure if exists rowq.internal_archive;

delimiter //
create procedure rowq.internal_archive(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_archived int
)
sql security definer
modifies sql data
begin
-- routine   internal_archive
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- promise   P19 P26
-- locks     finished rows, passing over locked ones; message rows, tried only; new archive rows; as
--           internal_cut_ties
    declare v_after, v_finish_id bigint;
    declare v_finished_at datetime(6);
    declare v_state varchar(20);
    declare v_messages, v_rest, v_free longtext;
    declare v_there int;
    set p_archived = 0;

    select greatest(l.floor - 1, 0) into v_after
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -3 /* finished */;

    batches: while p_archived < p_limit do
        -- Find the row without locks, then lock it by its whole key, so that no gap is locked.
        set v_finish_id = null;
        select f.finish_id, f.state into v_finish_id, v_state
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id
          and f.finish_id > v_after
        order by f.part_id, f.finish_id
        limit 1;
        if v_finish_id is null then
            leave batches;
        end if;
        set v_after = v_finish_id, v_messages = null;
        select f.messages, f.finished_at, f.state into v_messages, v_finished_at, v_state
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id
          and f.finish_id = v_finish_id
        for update skip locked;
        if v_messages is null then
            iterate batches;
        end if;

        set v_rest = v_messages;
        call rowq.internal_cut_slice(v_rest, p_limit - p_archived, v_messages);

        -- Leave a batch alone while a producer is adding a message that waits for one of it.
        select json_arrayagg(json_array(h.message_id, null, null, h.has_successors)) into v_free
        from (
            select m.message_id, m.has_successors
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */ skip locked
        ) h;
        if coalesce(json_length(v_free), 0) < json_length(v_messages) then
            select count(*) into v_there
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
            if v_there > coalesce(json_length(v_free), 0) then
                iterate batches;
            end if;
        end if;

        insert into rowq.archive (
            part_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
            dedup_key, headers, body, body_binary, group_key
        )
        select p_part_id, v_finished_at, j.message_id, j.lane, j.attempt, m.enqueued_at, v_state,
               m.message_type, m.dedup_key, m.headers, m.body, m.body_binary, m.group_key
        from json_table(
            v_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        delete m
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        if v_rest is null then
            delete f
            from rowq.finished f force index (primary)
            where f.part_id = p_part_id
              and f.finish_id = v_finish_id;
        else
            update rowq.finished f force index (primary)
            set f.messages = v_rest
            where f.part_id = p_part_id
              and f.finish_id = v_finish_id;
        end if;
        set p_archived = p_archived + json_length(v_messages);
        -- The end of a message did not see what its producer had not committed then.
        if json_contains(json_extract(v_free, '$[*][3]'), '1') then
            call rowq.internal_cut_ties(p_part_id, v_free, p_owns_transaction);
        end if;
    end while;
end//
delimiter ;
