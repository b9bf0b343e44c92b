drop procedure if exists rowq.publish_batch;

delimiter //
create procedure rowq.publish_batch(p_messages longtext)
sql security definer
modifies sql data
comment 'Publish many messages in one call: all of them or, on an error, none.'
begin
-- routine   publish_batch
-- version   1
-- purpose   Publish many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue_batch, in the order of queue names
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queues, v_picked, v_results, v_all_results longtext;
    declare v_picked_positions, v_names longblob;
    declare v_at, v_queue_id int;

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
                -- MySQL raises 3157 for JSON nested more than 100 deep.
                declare exit handler for 3157
                    call rowq.internal_refuse(
                        'messages must be JSON nested less than 100 deep'
                    );
                if coalesce(not json_valid(p_messages), true)
                   or json_type(p_messages) <> 'ARRAY'
                   or json_length(p_messages) > 10000 then
                    call rowq.internal_refuse(
                        'messages must be a JSON array of at most 10000 objects'
                    );
                elseif locate(x'ED', cast(p_messages as binary)) > 0 then
                    call rowq.internal_check_text('messages', p_messages);
                end if;
            end;

            begin
                -- Error 1301: a function's result would exceed max_allowed_packet.
                declare exit handler for 1301
                    call rowq.internal_refuse(
                        'the batch exceeds max_allowed_packet; use fewer messages'
                    );
                call rowq.internal_bound_queues(p_messages, v_queues);
                call rowq.internal_check_unbound(p_messages, v_queues);
                set v_at = 0, v_all_results = '', v_names = '';
                while v_at < json_length(v_queues) do
                    call rowq.internal_pick_messages(
                        p_messages, json_extract(v_queues, concat('$[', v_at, '][3]')),
                        v_picked, v_picked_positions
                    );
                    set v_queue_id = json_extract(v_queues, concat('$[', v_at, '][0]'));
                    call rowq.internal_store_published(
                        v_queue_id, v_picked, v_picked_positions, v_results
                    );
                    if v_results is null then
                        call rowq.internal_store_batch(
                            v_queue_id, v_picked, v_picked_positions, v_owns_transaction, v_results
                        );
                    end if;
                    set v_all_results = concat(v_all_results, if(v_at = 0, '', ','), v_results),
                        v_names = concat(
                            v_names,
                            rpad(
                                json_unquote(json_extract(v_queues, concat('$[', v_at, '][1]'))),
                                800, ' '
                            )
                        ),
                        v_at = v_at + 1;
                end while;
            end;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    -- Look up names by position: a join would sort wide rows, which exceed the memory of a sort.
    select j.position,
           convert(
               unhex(rtrim(substring(v_names, j.queue_number * 800 - 799, 800))) using utf8mb4
           ) as queue_name,
           j.message_id, j.outcome
    from json_table(
        concat('[', v_all_results, ']'),
        '$[*]' columns (
            queue_number for ordinality,
            nested path '$[*]' columns (
                position int path '$[0]',
                message_id bigint path '$[1]',
                outcome varchar(20) path '$[2]'
            )
        )
    ) j
    order by j.queue_number, j.position;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
