drop procedure if exists rowq.cancel_many;

delimiter //
create procedure rowq.cancel_many(
    p_queue_name longtext,
    p_message_type longtext,
    p_group_key longtext,
    p_header_name longtext,
    p_header_value longtext,
    p_enqueued_before datetime(6),
    p_after_message_id bigint,
    p_max_messages int
)
sql security definer
modifies sql data
comment 'Cancel messages that match all given filters and that no worker holds.'
begin
-- routine   cancel_many
-- version   1
-- purpose   Cancel messages that match all given filters and that no worker holds.
-- promise   P15
-- locks     as cancel
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   it also scans other queues' messages, because the table's key is the id alone; a
--           message that was retried or delayed is searched for among all ready messages of the
--           queue
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_scanned int;
    declare v_limit int default coalesce(p_max_messages, 1000);
    declare v_last_id bigint;
    declare v_path varchar(300) default concat('$."', left(p_header_name, 200), '"');
    declare v_type, v_key, v_value longblob;
    declare v_ids, v_claim_ids, v_held, v_finished, v_messages longtext;

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
            /*M!100600 call rowq.internal_set_session(@@timestamp); */
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_range('max_messages', v_limit, 1, 10000);
            if (p_header_name is null) <> (p_header_value is null) then
                call rowq.internal_refuse('header_name and header_value must be set together');
            end if;
            if char_length(p_header_name) not between 1 and 200
               or p_header_name regexp '[^ -~]|["\\\\]|^-' then
                call rowq.internal_refuse(
                    'header_name must be 1 to 200 printable ASCII characters, no ", \\, leading -'
                );
            end if;
            if coalesce(p_message_type, p_group_key, p_header_name, p_enqueued_before) is null then
                call rowq.internal_refuse(
                    'a filter is required: message_type, group_key, header_name, enqueued_before'
                );
            end if;
            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            -- Compare bytes: texts that differ in trailing blanks are equal.
            set v_type = cast(p_message_type as binary), v_key = cast(p_group_key as binary),
                v_value = cast(p_header_value as binary), v_messages = null;

            select json_arrayagg(if(h.is_wanted, h.message_id, 0)), count(*), max(h.message_id)
            into v_ids, v_scanned, v_last_id
            from (
                select m.message_id,
                       m.queue_id = v_queue_id
                       and (v_type is null or cast(m.message_type as binary) = v_type)
                       and (v_key is null or m.group_key = v_key)
                       and (p_enqueued_before is null or m.enqueued_at < p_enqueued_before)
                       and (
                           v_value is null
                           or cast(json_unquote(json_extract(m.headers, v_path)) as binary)
                              = v_value
                           and json_type(json_extract(m.headers, v_path))
                               in ('STRING', 'INTEGER', 'UNSIGNED INTEGER', 'BOOLEAN')
                       ) as is_wanted
                from rowq.message m force index (primary)
                where m.message_id > coalesce(p_after_message_id, 0)
                order by m.message_id
                limit v_limit
            ) h;
            call rowq.internal_claims_of(v_queue_id, v_ids, v_claim_ids, v_held);
            call rowq.internal_finished_of(v_queue_id, v_ids, v_finished);

            -- Skip leased messages, and finished ones that wait for the archiver: they would be
            -- searched for among all ready messages.
            select json_arrayagg(j.message_id) into v_ids
            from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
            left join (
                select distinct a.message_id
                from json_table(
                    json_merge_preserve(coalesce(v_held, '[]'), coalesce(v_finished, '[]')),
                    '$[*]' columns (message_id bigint path '$')
                ) a
            ) n on n.message_id = j.message_id
            where j.message_id > 0
              and n.message_id is null;
            if v_ids is not null then
                call rowq.internal_cancel_unleased(
                    v_queue_id, v_ids, v_owns_transaction, v_messages
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select coalesce(json_length(v_messages), 0) as cancelled,
           if(v_scanned = v_limit, v_last_id, null) as after_message_id;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
