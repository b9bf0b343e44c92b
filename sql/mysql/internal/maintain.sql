-- Maintain: floors, expiry, promote, reap, schedules, archive, purges.
--
-- Any session may call maintain at any time. For each queue one caller is elected by a lock that is
-- tried, never waited for: many callers cost no more than one. One statement skips all idle queues.
-- Delivery comes first; purges get the rest of 100 ms. If a queue fails, its error is kept for
-- health and the other queues are maintained; a call for that queue alone raises the error.
--
--   maintain -> idle_queues -> find_idle
--   maintain -> maintain_queue -> maintain_delivery, maintain_retention
--   maintain -> record_maintain_error
--
-- Writes meta. Only reads claim, delayed, expiry, finished, history, lane, queue, ready, deferred,
-- result, schedule, started.

drop procedure if exists rowq.internal_idle_queues;

delimiter //
create procedure rowq.internal_idle_queues(
    p_queue_ids longtext,
    out p_idle longtext,
    out p_busy longtext
)
sql security definer
modifies sql data
begin
-- purpose   Divide queues into idle ones, with the result of their election, and busy ones.
-- locks     rows of lane, skipped if locked, during this call
-- commits   its own transaction if the caller has none; never the caller's
-- differs   only engines whose readers scan dead rows need it
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_idle_ids, v_free longtext;

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
            set p_idle = null, p_busy = p_queue_ids;

            -- In the caller's transaction an election lasts until it ends, so treat every queue as
            -- busy.
            if v_owns_transaction then
                call rowq.internal_find_idle(p_queue_ids, v_idle_ids);
                select json_arrayagg(h.queue_id) into v_free
                from (
                    select l.queue_id
                    from json_table(v_idle_ids, '$[*]' columns (queue_id int path '$')) j
                    straight_join rowq.lane l force index (primary)
                        on l.queue_id = j.queue_id
                       and l.lane = -1 /* claim */
                    for update /*!80000 of l */ skip locked
                ) h;
                select json_arrayagg(json_array(j.queue_id, f.queue_id is not null)) into p_idle
                from json_table(v_idle_ids, '$[*]' columns (queue_id int path '$')) j
                left join (
                    select distinct h.queue_id
                    from json_table(v_free, '$[*]' columns (queue_id int path '$')) h
                ) f on f.queue_id = j.queue_id;
                select json_arrayagg(p.queue_id) into p_busy
                from json_table(p_queue_ids, '$[*]' columns (queue_id int path '$')) p
                left join (
                    select distinct h.queue_id
                    from json_table(v_idle_ids, '$[*]' columns (queue_id int path '$')) h
                ) j on j.queue_id = p.queue_id
                where j.queue_id is null;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_find_idle;

delimiter //
create procedure rowq.internal_find_idle(p_queue_ids longtext, out p_idle longtext)
sql security definer
reads sql data
begin
-- purpose   Return the queues in which maintain has nothing to do.
    -- Microseconds. A slower sample has read dead rows, so a floor must move.
    declare c_fast_scan bigint default 300;
    declare c_fast_total bigint default 2000 + 100 * json_length(p_queue_ids);
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_samples longtext;

    -- sysdate, unlike utc_timestamp, is evaluated per row. Each subquery stops at the first row
    -- that is not a sentinel, or returns null.
    select json_arrayagg(
               json_array(
                   p.queue_id,
                   sysdate(6),
                   l.sweep_at between v_now and v_now + interval 5 minute
                   and (
                       select r.attempt
                       from rowq.ready r force index (primary)
                       where r.queue_id = l.queue_id
                         and r.message_id > 0
                       limit 1
                   ) is null
                   and (
                       select c.messages is null
                       from rowq.claim c force index (primary)
                       where c.queue_id = l.queue_id
                         and c.claim_id > 0
                       limit 1
                   ) is null
                   and (
                       select f.messages is null
                       from rowq.finished f force index (primary)
                       where f.queue_id = l.queue_id
                         and f.finish_id > 0
                       limit 1
                   ) is null
                   and coalesce((
                       select d.due_at > v_now or d.attempt is null
                       from rowq.delayed d force index (primary)
                       where d.queue_id = l.queue_id
                         and d.message_id > 0
                       order by d.queue_id, d.due_at, d.message_id
                       limit 1
                   ), true)
                   and coalesce((
                       select r.due_at > v_now or r.is_hint is null
                       from rowq.deferred r force index (primary)
                       where r.queue_id = l.queue_id
                         and r.deferred_id > 0
                       order by r.queue_id, r.due_at, r.deferred_id
                       limit 1
                   ), true)
                   and coalesce((
                       select e.expires_at > v_now or e.message_id is null
                       from rowq.expiry e force index (primary)
                       where e.queue_id = l.queue_id
                         and e.expiry_id > 0
                       order by e.queue_id, e.expires_at, e.expiry_id
                       limit 1
                   ), true)
                   and (
                       select s.missed
                       from rowq.schedule s force index (primary)
                       where s.queue_id = l.queue_id
                         and s.next_run_at <= v_now
                       limit 1
                   ) is null
                   and (
                       not q.has_started
                       or coalesce((
                           select s.started_at > v_now - interval round(
                                      if(q.rate_limit > 0, q.rate_seconds, 0) * 1000000
                                  ) microsecond
                           from rowq.started s force index (primary)
                           where s.queue_id = l.queue_id
                             and s.claim_id > 0
                           order by s.queue_id, s.started_at, s.claim_id
                           limit 1
                       ), true)
                   )
                   and (
                       not q.has_results
                       or coalesce((
                           select k.finished_at > v_now - interval round(
                                      q.result_seconds * 1000000
                                  ) microsecond
                                  or k.state is null
                           from rowq.result k force index (result_finished_ix)
                           where k.queue_id = l.queue_id
                             and k.message_id > 0
                           order by k.queue_id, k.finished_at
                           limit 1
                       ), true)
                   )
                   and (
                       not q.has_history
                       or coalesce((
                           select h.ended_at >= v_now - interval q.history_days day
                                  or h.outcome is null
                           from rowq.history h force index (primary)
                           where h.queue_id = l.queue_id
                             and h.message_id > 0
                           order by h.queue_id, h.ended_at, h.message_id, h.claim_id
                           limit 1
                       ), true)
                   ),
                   sysdate(6)
               )
           )
    into v_samples
    from json_table(p_queue_ids, '$[*]' columns (queue_id int path '$')) p
    left join rowq.lane l force index (primary)
        on l.queue_id = p.queue_id
       and l.lane = -1 /* claim */
    left join rowq.queue q force index (primary) on q.queue_id = p.queue_id;

    -- If the server makes sysdate a constant, only the total time is known.
    if timestampdiff(microsecond, v_now, utc_timestamp(6)) > c_fast_total then
        set v_samples = null;
    end if;

    select json_arrayagg(j.queue_id) into p_idle
    from json_table(
        v_samples,
        '$[*]' columns (
            queue_id int path '$[0]',
            began datetime(6) path '$[1]',
            is_idle boolean path '$[2]',
            ended datetime(6) path '$[3]'
        )
    ) j
    where j.is_idle is true
      and timestampdiff(microsecond, j.began, j.ended) between 0 and c_fast_scan;
end//
delimiter ;

drop procedure if exists rowq.internal_maintain_queue;

delimiter //
create procedure rowq.internal_maintain_queue(
    p_queue_id int,
    p_limit int,
    p_until datetime(6),
    out p_elected boolean,
    out p_promoted int,
    out p_reaped int,
    out p_died int,
    out p_archived int,
    out p_purged int,
    out p_partitions_dropped int,
    out p_expired int
)
sql security definer
modifies sql data
begin
-- purpose   Maintain one queue in the session that is elected for it.
-- locks     rows of lane, skipped if locked
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701
    declare v_is_done boolean default true;
    declare v_has_results, v_has_history boolean;
    declare v_now datetime(6);
    declare v_more int;
    set p_archived = 0, p_purged = 0, p_partitions_dropped = 0;

    call rowq.internal_maintain_delivery(
        p_queue_id, p_limit, p_elected, p_promoted, p_reaped, p_died, p_expired,
        v_has_results, v_has_history
    );
    if p_elected then
        call rowq.internal_run_schedules(p_queue_id);
        call rowq.internal_close_fronts(p_queue_id);
        call rowq.internal_maintain_archive(
            p_queue_id, p_limit, p_archived, p_purged, p_partitions_dropped, v_is_done
        );
        if not v_is_done then
            call rowq.internal_sweep_again(p_queue_id);
        end if;
        if v_has_results then
            -- Results use half of the time left, history the rest.
            set v_now = utc_timestamp(6);
            call rowq.internal_maintain_retention(
                p_queue_id, 'results', p_limit,
                v_now + interval timestampdiff(microsecond, v_now, p_until) div 2 microsecond,
                v_more
            );
            set p_purged = p_purged + v_more;
        end if;
        if v_has_history then
            call rowq.internal_maintain_retention(p_queue_id, 'history', p_limit, p_until, v_more);
            set p_purged = p_purged + v_more;
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_maintain_delivery;

delimiter //
create procedure rowq.internal_maintain_delivery(
    p_queue_id int,
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
-- purpose   Run the part of maintain that delivery needs: floors, expiry, promote, reap and limits.
-- locks     as promote and reap; the queue, shared; the limit lock, skipped if locked
-- commits   its own transaction if the caller has none; never the caller's
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
            where q.queue_id = p_queue_id;
            call rowq.internal_lock_queue_shared(p_queue_id, coalesce(v_queue_name, ''));
            -- The election lasts until the transaction ends, which may be the caller's.
            set v_lane = null;
            select l.lane into v_lane
            from rowq.lane l force index (primary)
            where l.queue_id = p_queue_id
              and l.lane = -1 /* claim */
            for update skip locked;
            set p_elected = v_lane is not null, p_promoted = 0, p_reaped = 0, p_died = 0,
                p_expired = 0;

            if p_elected then
                -- Move the floors first, so that the steps below find late rows.
                call rowq.internal_rescan_floors(
                    p_queue_id, v_has_started, p_has_results, p_has_history
                );
                -- Not in the caller's transaction: with an old snapshot, a moved message looks like
                -- an ended one.
                if v_owns_transaction then
                    call rowq.internal_expire(p_queue_id, v_archive_days, p_limit, p_expired);
                end if;
                call rowq.internal_promote(p_queue_id, p_limit, v_owns_transaction, p_promoted);
                call rowq.internal_run_deferred(
                    p_queue_id, p_limit, v_owns_transaction, true, v_solved
                );
                call rowq.internal_reap(
                    p_queue_id, v_max_attempts, v_history_days, p_limit, v_owns_transaction,
                    p_reaped, p_died
                );
                -- Not in the caller's transaction, which may be repeatable read and then locks gaps
                -- where dequeues insert.
                if v_has_started and v_owns_transaction then
                    call rowq.internal_purge_started(p_queue_id, v_started_seconds, 10 * p_limit);
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if p_elected and v_max_leased > 0 then
        call rowq.internal_move_safe_floor(p_queue_id);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_maintain_retention;

delimiter //
create procedure rowq.internal_maintain_retention(
    p_queue_id int,
    p_what varchar(7),
    p_limit int,
    p_until datetime(6),
    out p_purged int
)
sql security definer
modifies sql data
begin
-- purpose   Purge old results or history; log an error as a warning.
-- locks     the queue, shared; as internal_purge_results or internal_purge_history
-- commits   its own transaction per batch if the caller has none; never the caller's
--
-- p_what is 'results' or 'history'. One batch always runs; further ones, up to 10, until p_until.
    declare c_most_batches int default 10;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_batches, v_batch int default 0;
    declare v_result_seconds double;
    declare v_history_days int;
    declare v_queue_name longtext;
    set p_purged = 0;

    batches: loop
        begin
            declare v_errno int;
            declare v_text varchar(128);
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno, v_text = message_text;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                -- As in internal_maintain_archive.
                if (v_errno in (1213, 1020) and not v_owns_transaction)
                   or v_errno in (1317, 1969, 3024) then
                    resignal;
                end if;
                if v_tries_left = 0 then
                    set v_text = left(concat('rowq ', p_what, ': ', v_text), 128);
                    signal sqlstate '01000' set message_text = v_text;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set v_result_seconds = null, v_history_days = null;
            select q.result_seconds, q.history_days, convert(q.queue_name using utf8mb4)
            into v_result_seconds, v_history_days, v_queue_name
            from rowq.queue q
            where q.queue_id = p_queue_id;
            -- drop_queue locks the rows below in another order.
            call rowq.internal_lock_queue_shared(p_queue_id, coalesce(v_queue_name, ''));
            if p_what = 'results' then
                call rowq.internal_purge_results(p_queue_id, v_result_seconds, p_limit, v_batch);
            else
                call rowq.internal_purge_history(p_queue_id, v_history_days, p_limit, v_batch);
            end if;
            call rowq.internal_commit_work(v_owns_transaction);
            set p_purged = p_purged + v_batch, v_batches = v_batches + 1;
            if v_batch < p_limit or v_batches = c_most_batches or utc_timestamp(6) > p_until then
                leave batches;
            end if;
        end;
        if v_tries_left = 0 then
            leave batches;
        end if;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_record_maintain_error;

delimiter //
create procedure rowq.internal_record_maintain_error(p_queue_id int, p_error varchar(500))
sql security definer
modifies sql data
begin
-- purpose   Record the error of maintain for a queue, for health; null deletes it.
-- locks     a meta row
-- commits   its own transaction; nothing if the caller has one
    declare v_owns_transaction boolean;
    declare v_tries_left int default 1;
    declare v_name varchar(100) default concat('maintain_fault.', p_queue_id);
    declare exit handler for sqlexception
    begin
        call rowq.internal_roll_back(v_owns_transaction, null, v_tries_left);
    end;

    call rowq.internal_begin_work(v_owns_transaction);
    if v_owns_transaction and p_error is null then
        delete from rowq.meta
        where name = v_name;
    elseif v_owns_transaction then
        insert into rowq.meta (name, value, changed_at)
        values (v_name, p_error, utc_timestamp(6))
        on duplicate key update
            changed_at = if(value = values(value), changed_at, values(changed_at)),
            value = values(value);
    end if;
    call rowq.internal_commit_work(v_owns_transaction);
end//
delimiter ;
