drop procedure if exists rowq.complete;

delimiter //
create procedure rowq.complete(p_queue_name longtext, p_claim_id bigint, p_message_ids longtext)
sql security definer
modifies sql data
comment 'Finish messages: they are gone, or in the archive, and never delivered again.'
begin
-- routine   complete
-- version   1
-- purpose   Finish messages: they are gone, or in the archive, and never delivered again.
-- promise   P04 P08
-- locks     with an archive the part, shared; the claim row; then message and dedup rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_archive_days int;
    declare v_messages longtext;

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

            call rowq.internal_check_ids(p_message_ids);
            if p_claim_id is null then
                call rowq.internal_refuse('claim_id is missing');
            end if;

            set v_part_id = null;
            select q.part_id, q.archive_days into v_part_id, v_archive_days
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            if v_archive_days > 0 then
                call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            end if;
            call rowq.internal_pop_claimed(
                v_part_id, p_claim_id, p_message_ids, v_owns_transaction, v_messages
            );
            if v_messages is not null then
                call rowq.internal_finish(v_part_id, v_archive_days, v_messages, 'completed');
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    call rowq.internal_outcomes(p_message_ids, v_messages, 'completed');

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;
