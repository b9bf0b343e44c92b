drop procedure if exists rowq.internal_maintain_kept;

delimiter //
create procedure rowq.internal_maintain_kept(
    p_part_id int,
    p_what varchar(7),
    p_limit int,
    p_until datetime(6),
    out p_purged int
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_kept
-- purpose   Purge 'results' or 'history' in maintain: p_limit old rows, and till p_until up to ten times as many; an error in it is a warning.
-- promise   P19 P32 P37
-- locks     the part, shared; as internal_purge_results or internal_purge_history
-- commits   its own transactions where the caller has none, one a batch; never the caller's
-- differs   PostgreSQL has it in maintain_queue, in a block of its own
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
                -- As in internal_maintain_archive: these are the caller's to know.
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
            where q.part_id = p_part_id;
            -- drop_queue locks these rows in another order.
            call rowq.internal_lock_part_shared(p_part_id, coalesce(v_queue_name, ''));
            if p_what = 'results' then
                call rowq.internal_purge_results(p_part_id, v_result_seconds, p_limit, v_batch);
            else
                call rowq.internal_purge_history(p_part_id, v_history_days, p_limit, v_batch);
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
