drop procedure if exists rowq.complete;

delimiter //
create procedure rowq.complete(
    p_queue_name longtext,
    p_claim_id bigint,
    p_message_ids longtext,
    p_results longtext
)
sql security definer
modifies sql data
comment 'Finish messages: delete or archive them, and never deliver them again.'
begin
-- routine   complete
-- version   1
-- purpose   Finish messages: delete or archive them, and never deliver them again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37 P49
-- locks     with an archive the queue, shared; the claim row; then message and dedup rows, rows of
--           groups and of waiting messages, skipping locked ones; new result and history rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_first_id, v_last_id bigint;
    declare v_is_done boolean default false;
    declare v_messages longtext;
    /*!80000 declare v_count int; */

    -- Fast path: own transaction, whole claim, no keys, archive, results or history. Errors and all
    -- other cases change nothing here and go to the loop below.
    fast_path: begin
        -- handlers: copied to complete_and_dequeue by make generate
        -- Do not wait for the same lock twice (1205), and stop if the call was killed (1317) or
        -- timed out (1969, 3024). But message rows are never waited for here.
        declare exit handler for 1205, 1317, 1969, 3024
        begin
            declare v_errno int;
            get diagnostics condition 1 v_errno = mysql_errno;
            if v_errno = 1205 and v_is_done then
                rollback and no chain no release;
                set v_is_done = false;
            else
                call rowq.internal_roll_back(v_owns_transaction, null, v_tries_left);
                resignal;
            end if;
        end;
        declare exit handler for sqlexception
        begin
            if v_owns_transaction then
                rollback and no chain no release;
            end if;
            set v_is_done = false;
        end;
        -- end of handlers

        if p_message_ids is not null or p_claim_id is null or p_results is not null then
            leave fast_path;
        end if;
        call rowq.internal_begin_work(v_owns_transaction);
        if not v_owns_transaction then
            leave fast_path;
        end if;

        select c.queue_id, c.first_id, c.last_id, c.messages
        into v_queue_id, v_first_id, v_last_id, v_messages
        from rowq.queue q
        straight_join rowq.claim c force index (primary)
            on c.queue_id = q.queue_id
           and c.claim_id = p_claim_id
        where q.queue_name = cast(p_queue_name as binary)
          and q.archive_days = 0
          and q.result_seconds = 0
          and q.history_days = 0
          and c.claim_id > 0
          and not c.is_keyed;
        -- completion: copied to complete_and_dequeue by make generate
        if v_queue_id is not null then
            -- The claim was read without a lock. The session that deletes it unchanged owns its
            -- messages.
            delete from rowq.claim
            where queue_id = v_queue_id
              and claim_id = p_claim_id
              and first_id <=> v_first_id
              and last_id <=> v_last_id
              and messages <=> v_messages;
            set v_is_done = row_count() > 0;
        end if;
        /*!80000
        -- MySQL has no timeout of 0 for the locks of one statement.
        if v_is_done then
            select count(*) into v_count
            from (
                select m.message_id
                from json_table(
                    coalesce(
                        v_messages, concat('[0', repeat(',0', v_last_id - v_first_id), ']')
                    ),
                    '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
                ) j
                straight_join rowq.message m force index (primary)
                    on m.message_id = if(
                        v_messages is null, v_first_id + j.place - 1, j.message_id
                    )
                limit 1000000
                for update of m skip locked
            ) h;
            if v_count < coalesce(json_length(v_messages), v_last_id - v_first_id + 1) then
                rollback and no chain no release;
                set v_is_done = false;
                leave fast_path;
            end if;
        end if;
        */
        if v_is_done and v_messages is null then
            -- Find each message by its key. A delete by range waits for a lock on the row after its
            -- end, and scans the whole table if the server believes it empty, as after a restart.
            -- An array of zeros counts to the end of the range. The loop below takes rows that
            -- another transaction has locked.
            if v_first_id = v_last_id then
                /*M!100600 set statement innodb_lock_wait_timeout = 0 for */
                delete from rowq.message
                where message_id = v_first_id
                  and has_successors is null;
            else
                /*M!100600 set statement innodb_lock_wait_timeout = 0 for */
                delete m
                from json_table(
                    concat('[0', repeat(',0', v_last_id - v_first_id), ']'),
                    '$[*]' columns (place for ordinality)
                ) j
                straight_join rowq.message m force index (primary)
                    on m.message_id = v_first_id + j.place - 1
                where m.has_successors is null;
            end if;
        elseif v_is_done then
            /*M!100600 set statement innodb_lock_wait_timeout = 0 for */
            delete m
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            where m.has_successors is null;
        end if;
        -- end of completion
        if v_is_done
           and row_count() < coalesce(json_length(v_messages), v_last_id - v_first_id + 1) then
            -- The remaining messages have successors.
            if v_messages is null then
                call rowq.internal_expand_range(v_first_id, v_last_id, 0, 0, v_messages);
            end if;
            call rowq.internal_end_awaited(v_queue_id, v_messages, true);
        end if;
        commit and no chain no release;
    end;

    attempt: while not v_is_done do
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

            call rowq.internal_complete_claimed(
                p_queue_name, p_claim_id, p_message_ids, p_results, v_owns_transaction, v_messages
            );
            call rowq.internal_commit_work(v_owns_transaction);
            set v_is_done = true, v_first_id = null;
        end;
    end while;

    if v_messages is not null or p_message_ids is not null then
        call rowq.internal_outcomes(p_message_ids, v_messages, 'completed', null);
    elseif v_first_id = v_last_id then
        select v_first_id as message_id, 'completed' as outcome;
    else
        -- An array of zeros counts to the end of the range.
        select v_first_id + j.place - 1 as message_id, 'completed' as outcome
        from json_table(
            concat('[0', repeat(',0', v_last_id - v_first_id), ']'),
            '$[*]' columns (place for ordinality)
        ) j;
    end if;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
