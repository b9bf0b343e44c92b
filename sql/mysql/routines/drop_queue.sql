drop procedure if exists rowq.drop_queue;

delimiter //
create procedure rowq.drop_queue(p_queue_name longtext, p_force boolean)
sql security definer
modifies sql data
comment 'Drop an empty queue or, with force, a queue with its messages and its archive.'
begin
-- routine   drop_queue
-- version   1
-- purpose   Drop an empty queue or, with force, a queue with its messages and its archive.
-- promise   P02 P15
-- locks     the queue, exclusively, and all rows of the queue; waits up to 1 s
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;

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

            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_remove_queue(v_queue_id, p_queue_name, coalesce(p_force, false));

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, 'dropped' as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
