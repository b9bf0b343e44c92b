drop procedure if exists rowq.reset;

delimiter //
create procedure rowq.reset(
    p_queue_name longtext,
    p_message_ids longtext,
    p_max_messages int,
    p_message_type longtext,
    p_died_before datetime(6)
)
sql security definer
modifies sql data
comment 'Make dead messages ready again, at the tail of their priority, with fresh attempts.'
begin
-- routine   reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts.
-- promise   P10 P12 P32
-- locks     the queue, shared; dead rows, skipping locked ones; dedup rows; message rows, skipped
--           if locked; result rows; new ready rows; groups as enqueue
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_seen, v_dead, v_taken, v_reset, v_ended, v_waiting, v_ready longtext;

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
            -- The session's settings may truncate json_arrayagg at 1 MB, and the keys of 10000
            -- messages are longer.
            /*M!100600 call rowq.internal_set_session(@@timestamp); */
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_lock_dead(
                p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before,
                v_queue_id, v_dead
            );
            set v_taken = null, v_reset = null;

            if v_dead is not null then
                -- A dead message whose dedup key another message owns stays dead.
                call rowq.internal_retake_dedup_keys(v_queue_id, v_dead);
                select json_arrayagg(m.message_id) into v_taken
                from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.message m force index (primary)
                    on m.message_id = j.message_id
                left join rowq.dedup k force index (primary)
                    on k.queue_id = v_queue_id
                   and k.dedup_key = m.dedup_key
                where m.dedup_key is not null
                  and coalesce(k.message_id, 0) <> m.message_id;

                select json_arrayagg(json_array(
                           j.message_id, j.lane div 2 * 2 + 1, 0, coalesce(j.holds_slot, 0)
                       ))
                into v_reset
                from json_table(
                    v_dead,
                    '$[*]' columns (
                        message_id bigint path '$[0]',
                        lane smallint path '$[1]',
                        holds_slot tinyint path '$[3]'
                    )
                ) j
                left join (
                    select distinct a.message_id
                    from json_table(v_taken, '$[*]' columns (message_id bigint path '$')) a
                ) t on t.message_id = j.message_id
                where t.message_id is null;
            end if;
            if v_reset is not null then
                -- Copy the error to the message, unless a producer has locked its row: reset waits
                -- for no session. Without the limit MySQL would merge the select into the update,
                -- and wait.
                update (
                    select x.message_id, d.last_error
                    from json_table(
                        v_reset, '$[*]' columns (message_id bigint path '$[0]')
                    ) j
                    straight_join rowq.dead d force index (primary)
                        on d.queue_id = v_queue_id
                       and d.message_id = j.message_id
                    straight_join rowq.message x force index (primary)
                        on x.message_id = j.message_id
                    limit 1000000
                    for update /*!80000 of d, x */ skip locked
                ) h
                straight_join rowq.message m force index (primary)
                    on m.message_id = h.message_id
                set m.last_error = h.last_error;
                delete d
                from json_table(v_reset, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.dead d force index (primary)
                    on d.queue_id = v_queue_id
                   and d.message_id = j.message_id;
                -- A message that is reset has no result any more.
                select json_arrayagg(r.message_id) into v_ended
                from json_table(v_reset, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.result r force index (primary)
                    on r.queue_id = v_queue_id
                   and r.message_id = j.message_id;
                if v_ended is not null then
                    delete r
                    from json_table(v_ended, '$[*]' columns (message_id bigint path '$')) j
                    straight_join rowq.result r force index (primary)
                        on r.queue_id = v_queue_id
                       and r.message_id = j.message_id;
                end if;
                -- A message that still holds its slot does not join its group.
                call rowq.internal_rejoin_groups(v_queue_id, v_reset, v_waiting);
                set v_ready = v_reset;
                if v_waiting is not null then
                    select json_arrayagg(json_array(j.message_id, j.lane, 0)) into v_ready
                    from json_table(
                        v_reset,
                        '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
                    ) j
                    left join (
                        select distinct w.message_id
                        from json_table(v_waiting, '$[*]' columns (message_id bigint path '$')) w
                    ) h on h.message_id = j.message_id
                    where h.message_id is null;
                end if;
                if v_ready is not null then
                    call rowq.internal_push_ready(v_queue_id, v_ready);
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if p_message_ids is null then
        select json_arrayagg(j.message_id) into v_seen
        from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j;
    else
        set v_seen = p_message_ids;
    end if;
    select a.message_id,
           case
               when r.message_id is not null then 'reset'
               when t.message_id is not null then 'duplicate'
               else 'not_found'
           end as outcome
    from json_table(
        v_seen, '$[*]' columns (position for ordinality, message_id bigint path '$')
    ) a
    left join (
        select distinct j.message_id
        from json_table(v_reset, '$[*]' columns (message_id bigint path '$[0]')) j
    ) r on r.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_taken, '$[*]' columns (message_id bigint path '$')) j
    ) t on t.message_id = a.message_id
    order by a.position;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
