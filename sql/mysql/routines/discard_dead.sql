drop procedure if exists rowq.discard_dead;

delimiter //
create procedure rowq.discard_dead(
    p_queue_name longtext,
    p_message_ids longtext,
    p_max_messages int,
    p_message_type longtext,
    p_died_before datetime(6)
)
sql security definer
modifies sql data
comment 'Delete dead messages; they do not go to the archive.'
begin
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages; they do not go to the archive.
-- promise   P12 P22 P26
-- locks     the queue, shared; dead rows, skipping locked ones; then as complete
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_dead, v_without_slot, v_ids longtext;

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
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_lock_dead(
                p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before,
                v_queue_id, v_dead
            );
            if v_dead is not null then
                delete d
                from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.dead d force index (primary)
                    on d.queue_id = v_queue_id
                   and d.message_id = j.message_id;
                select json_arrayagg(if(j.holds_slot, null, j.message_id)),
                       json_arrayagg(j.message_id)
                into v_without_slot, v_ids
                from json_table(
                    v_dead,
                    '$[*]' columns (message_id bigint path '$[0]', holds_slot tinyint path '$[3]')
                ) j;
                call rowq.internal_finish(
                    v_queue_id, 0, true, v_dead, v_without_slot, v_ids, v_owns_transaction,
                    'cancelled'
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select coalesce(json_length(v_dead), 0) as removed;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
