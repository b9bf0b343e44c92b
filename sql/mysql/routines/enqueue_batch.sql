drop procedure if exists rowq.enqueue_batch;

delimiter //
create procedure rowq.enqueue_batch(p_queue_name longtext, p_messages longtext)
sql security definer
modifies sql data
comment 'Enqueue many messages in one call: all of them or, on an error, none.'
begin
-- routine   enqueue_batch
-- version   1
-- purpose   Enqueue many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     as enqueue; dedup and group keys in key order
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_first_id bigint;
    declare v_results longtext;

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
                if p_queue_name is null then
                    call rowq.internal_refuse_queue(p_queue_name);
                elseif coalesce(not json_valid(p_messages), true)
                       or left(p_messages, 1) <> '[' and json_type(p_messages) <> 'ARRAY'
                       or json_length(p_messages) > 10000 then
                    call rowq.internal_refuse(
                        'messages must be a JSON array of at most 10000 objects'
                    );
                elseif locate(x'ED', cast(p_messages as binary)) > 0 then
                    call rowq.internal_check_text('messages', p_messages);
                end if;
            end;

            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            call rowq.internal_store_plain(v_queue_id, p_messages, v_first_id);
            if v_first_id is null then
                call rowq.internal_store_batch(
                    v_queue_id, p_messages, null, v_owns_transaction, v_results
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if v_first_id is not null then
        select j.position,
               v_first_id + (j.position - 1) * @@auto_increment_increment as message_id,
               'enqueued' as outcome
        from json_table(p_messages, '$[*]' columns (position for ordinality)) j;
    else
        select j.position, j.message_id, j.outcome
        from json_table(
            v_results,
            '$[*]' columns (
                position int path '$[0]',
                message_id bigint path '$[1]',
                outcome varchar(20) path '$[2]'
            )
        ) j
        order by j.position;
    end if;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
