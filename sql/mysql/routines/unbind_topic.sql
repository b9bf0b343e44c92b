drop procedure if exists rowq.unbind_topic;

delimiter //
create procedure rowq.unbind_topic(p_queue_name longtext, p_topic_pattern longtext)
sql security definer
modifies sql data
comment 'Remove a queue''s pattern; messages already enqueued stay.'
begin
-- routine   unbind_topic
-- version   1
-- purpose   Remove a queue's pattern; messages already enqueued stay.
-- promise   P15 P35
-- locks     the queue, shared; the topic_binding row
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_outcome varchar(20);
    declare v_error varchar(120);

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

            call rowq.internal_topic_error('topic_pattern', p_topic_pattern, true, v_error);
            if v_error is not null then
                call rowq.internal_refuse(v_error);
            end if;
            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);

            delete b
            from rowq.topic_binding b force index (primary)
            where b.queue_id = v_queue_id
              and b.topic_pattern = cast(p_topic_pattern as binary);
            set v_outcome = if(row_count() > 0, 'unbound', 'not_bound');

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, p_topic_pattern as topic_pattern, v_outcome as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
