drop procedure if exists rowq.internal_maintain_delivery;

delimiter //
create procedure rowq.internal_maintain_delivery(
    p_part_id int,
    p_limit int,
    out p_elected boolean,
    out p_promoted int,
    out p_reaped int,
    out p_died int,
    out p_expired int,
    out p_has_results boolean,
    out p_has_history boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_delivery
-- purpose   Run the part of maintain that deliveries wait for: floors, expiry, promote, reap, and what limits need.
-- promise   P09 P11 P13 P14 P24 P26 P27 P28 P29 P36
-- locks     as promote and reap; the part, shared; the gate, passed over when locked
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_max_attempts, v_solved, v_max_leased, v_archive_days, v_history_days int;
    declare v_has_started boolean;
    declare v_started_seconds double;
    declare v_lane smallint;
    declare v_queue_name longtext;

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

            set v_max_attempts = null, p_has_results = false, p_has_history = false;
            select q.max_attempts, convert(q.queue_name using utf8mb4), q.max_leased, q.has_started,
                   if(q.rate_limit > 0, q.rate_seconds, 0), q.archive_days, q.has_results,
                   q.has_history, q.history_days
            into v_max_attempts, v_queue_name, v_max_leased, v_has_started, v_started_seconds,
                 v_archive_days, p_has_results, p_has_history, v_history_days
            from rowq.queue q
            where q.part_id = p_part_id;
            call rowq.internal_lock_part_shared(p_part_id, coalesce(v_queue_name, ''));
            -- The election lasts to the end of the transaction, which may be the caller's.
            set v_lane = null;
            select l.lane into v_lane
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = -1 /* claim */
            for update skip locked;
            set p_elected = v_lane is not null, p_promoted = 0, p_reaped = 0, p_died = 0,
                p_expired = 0;

            if p_elected then
                -- Put the floors right first, so that the steps below find what was committed late.
                call rowq.internal_rescan_floors(
                    p_part_id, v_has_started, p_has_results, p_has_history
                );
                -- Not in the caller's transaction, whose snapshot may be old: a message that it
                -- does not show where it is now would be taken for one that has ended.
                if v_owns_transaction then
                    call rowq.internal_expire(p_part_id, v_archive_days, p_limit, p_expired);
                end if;
                call rowq.internal_promote(p_part_id, p_limit, v_owns_transaction, p_promoted);
                call rowq.internal_recheck(
                    p_part_id, p_limit, v_owns_transaction, true, v_solved
                );
                call rowq.internal_reap(
                    p_part_id, v_max_attempts, v_history_days, p_limit, v_owns_transaction,
                    p_reaped, p_died
                );
                -- Not in the caller's transaction, which may be repeatable read: rows that are gone
                -- by now would be locked with the gaps where dequeues insert.
                if v_has_started and v_owns_transaction then
                    call rowq.internal_purge_started(p_part_id, v_started_seconds, 10 * p_limit);
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if p_elected and v_max_leased > 0 then
        call rowq.internal_move_safe_floor(p_part_id);
    end if;
end//
delimiter ;
