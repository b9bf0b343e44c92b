drop procedure if exists rowq.after_failover;

delimiter //
create procedure rowq.after_failover()
sql security definer
modifies sql data
comment 'Continue numbers far beyond those that another server may have given out.'
begin
-- routine   after_failover
-- version   1
-- purpose   Continue numbers far beyond those that another server may have given out.
-- promise   P08 P46
-- locks     new rows of message and queue, deleted at once; no worker or producer waits for them
-- commits   its own transaction if the caller has none; never the caller's. A rollback leaves the
--           number generators where they are
-- errors    none
-- differs   claim numbers start at the time of the server's start, so they move only if that was in
--           the second in which the other server started
    -- More than a server gives out between two states of its replica.
    declare c_jump bigint default 1000000000;
    declare c_queues int default 1000;
    declare c_claims int default 1000000;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_message_id, v_claim_id, v_queue_id, v_next_id, v_next_claim, v_next_queue bigint;

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
            -- MySQL shows old table statistics unless the session asks for new ones.
            call rowq.internal_set_session(@@timestamp);
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_newest_numbers(v_message_id, v_claim_id, v_queue_id);
            call rowq.internal_next_numbers(v_next_id, v_next_claim, v_next_queue);
            set v_message_id = greatest(v_message_id, v_next_id - 1) + c_jump,
                v_queue_id = greatest(v_queue_id, v_next_queue - 1) + c_queues;

            -- The next number is above the highest inserted, also when that row is deleted.
            insert into rowq.message (message_id, queue_id, enqueued_at)
            values (v_message_id, 0, utc_timestamp(6));
            delete m
            from rowq.message m force index (primary)
            where m.message_id = v_message_id;
            insert into rowq.queue (queue_id, queue_name, created_at)
            values (v_queue_id, uuid(), utc_timestamp(6));
            delete q
            from rowq.queue q force index (primary)
            where q.queue_id = v_queue_id;
            if v_claim_id >= v_next_claim then
                do benchmark(v_claim_id - v_next_claim + c_claims, uuid_short());
            end if;
            set v_claim_id = uuid_short() & 9007199254740991;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select n.name, n.was, n.is_now
    from (
        select 'claim' as name, v_next_claim - 1 as was, v_claim_id as is_now
        union all
        select 'message', v_next_id - 1, v_message_id
        union all
        select 'queue', v_next_queue - 1, v_queue_id
    ) n
    order by n.name;

    call rowq.internal_restore_session();
end//
delimiter ;
