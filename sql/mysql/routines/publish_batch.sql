drop procedure if exists rowq.publish_batch;

delimiter //
create procedure rowq.publish_batch(p_messages longtext)
sql security definer
modifies sql data
comment 'Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.'
begin
-- routine   publish_batch
-- version   1
-- purpose   Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; new rows, and with keys waits as enqueue_batch does, queue by
--           queue in the order of their names
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queues, v_picked, v_results, v_all_results longtext;
    declare v_picked_places longblob;
    declare v_at int;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);

            begin
                -- MySQL raises 3157 for JSON that is nested more than 100 deep.
                declare exit handler for 3157
                    call rowq.internal_refuse(
                        'messages must be JSON that is nested less than 100 deep'
                    );
                if coalesce(not json_valid(p_messages), true) then
                    call rowq.internal_refuse(
                        'messages must be a JSON array of at most 10000 objects'
                    );
                elseif json_type(p_messages) <> 'ARRAY' or json_length(p_messages) > 10000 then
                    call rowq.internal_refuse(
                        'messages must be a JSON array of at most 10000 objects'
                    );
                elseif locate(x'ED', cast(p_messages as binary)) > 0 then
                    call rowq.internal_check_text('messages', p_messages);
                end if;
            end;

            call rowq.internal_bound_queues(p_messages, v_queues);
            call rowq.internal_check_unbound(p_messages, v_queues);
            set v_at = 0, v_all_results = '';
            while v_at < json_length(v_queues) do
                call rowq.internal_pick_messages(
                    p_messages, json_extract(v_queues, concat('$[', v_at, '][3]')),
                    v_picked, v_picked_places
                );
                call rowq.internal_store_batch(
                    json_extract(v_queues, concat('$[', v_at, '][0]')), v_picked, v_picked_places,
                    v_owns_transaction, v_results
                );
                -- Put the number of the queue before each of its results.
                set v_all_results = concat(
                        v_all_results, if(v_at = 0, '', ','),
                        replace(
                            substring(v_results, 2, char_length(v_results) - 2),
                            '[', concat('[', v_at, ',')
                        )
                    ),
                    v_at = v_at + 1;
            end while;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select j.place as `position`, convert(unhex(q.queue_name) using utf8mb4) as queue_name,
           j.message_id, j.outcome
    from json_table(
        concat('[', v_all_results, ']'),
        '$[*]' columns (
            queue_number int path '$[0]',
            place int path '$[1]',
            message_id bigint path '$[2]',
            outcome varchar(20) path '$[3]'
        )
    ) j
    left join (
        select distinct n.place, n.queue_name
        from json_table(
            v_queues,
            '$[*]' columns (place for ordinality, queue_name varchar(800) path '$[1]')
        ) n
    ) q on q.place = j.queue_number + 1
    order by j.queue_number, j.place;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;
