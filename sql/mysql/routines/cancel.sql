drop procedure if exists rowq.cancel;

delimiter //
create procedure rowq.cancel(
    p_queue_name longtext,
    p_message_ids longtext,
    p_include_leased boolean
)
sql security definer
modifies sql data
comment 'Cancel messages that no worker holds, dead ones included.'
begin
-- routine   cancel
-- version   1
-- purpose   Cancel messages that no worker holds, dead ones included.
-- promise   P15 P34
-- locks     the queue, shared; claim rows, if include_leased, then blocked, delayed, dead,
--           group_waiting and ready rows, skipping locked ones; then as complete
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   a message that was retried or delayed is searched for among all ready messages of the
--           queue
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_recorded, v_rest, v_messages, v_finished, v_unknown longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_errno = 1205 and (v_owns_transaction or not @@innodb_rollback_on_timeout) then
                    -- A wait ended with innodb_lock_wait_timeout. If it rolls back the caller's
                    -- whole transaction, the caller gets the server's error.
                    signal sqlstate '45705' set message_text =
                        'RQ705 queue_busy: an open transaction has locked a message; retry';
                end if;
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            -- The session's settings may truncate json_arrayagg at 1 MB: raise the limit for long
            -- lists.
            /*M!100600
            if json_length(p_message_ids) > 300 then
                call rowq.internal_set_session(@@timestamp);
            end if;
            */
            call rowq.internal_begin_work(v_owns_transaction);

            if p_message_ids is null then
                call rowq.internal_refuse('message_ids is required');
            end if;
            call rowq.internal_check_ids(p_message_ids);

            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            set v_recorded = null, v_rest = p_message_ids;
            if p_include_leased then
                -- Check the claims first: leased messages are not searched for among the ready
                -- ones.
                call rowq.internal_record_cancels(v_queue_id, p_message_ids, v_recorded);
            end if;
            if v_recorded is not null then
                select json_arrayagg(j.message_id) into v_rest
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
                left join (
                    select distinct a.message_id
                    from json_table(v_recorded, '$[*]' columns (message_id bigint path '$')) a
                ) n on n.message_id = j.message_id
                where n.message_id is null;
            end if;
            call rowq.internal_cancel_unleased(v_queue_id, v_rest, v_owns_transaction, v_messages);

            -- A message without a body is unknown, and so is a finished message that waits for the
            -- archiver. All others are leased.
            call rowq.internal_finished_of(v_queue_id, p_message_ids, v_finished);
            select json_arrayagg(j.message_id) into v_unknown
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
            left join rowq.message m force index (primary)
                on m.message_id = j.message_id
               and m.queue_id = v_queue_id
            left join (
                select distinct x.message_id
                from json_table(v_finished, '$[*]' columns (message_id bigint path '$')) x
            ) n on n.message_id = m.message_id
            where m.message_id is null
               or n.message_id is not null;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select a.message_id,
           case
               when c.message_id is not null then 'cancelled'
               when n.message_id is not null then 'requested'
               when u.message_id is not null then 'not_found'
               else 'leased'
           end as outcome
    from json_table(
        p_message_ids, '$[*]' columns (position for ordinality, message_id bigint path '$')
    ) a
    left join (
        select distinct j.message_id
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
    ) c on c.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_recorded, '$[*]' columns (message_id bigint path '$')) j
    ) n on n.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_unknown, '$[*]' columns (message_id bigint path '$')) j
    ) u on u.message_id = a.message_id
    order by a.position;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
