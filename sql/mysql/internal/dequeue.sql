drop procedure if exists rowq.internal_dequeue;

delimiter //
create procedure rowq.internal_dequeue(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int,
    p_is_json boolean,
    out p_claim_id bigint,
    out p_lease_until datetime(6),
    out p_messages longtext,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_dequeue
-- purpose   Lease up to p_batch_size ready messages to one new claim, as rows or as one JSON array; nulls when there is none.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     where the queue has limits its gate; ready rows, passing over locked ones; the new
--           claim row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ713
-- differs   two routines share it, as a procedure cannot read the result of another
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_lease_seconds, v_promoted, v_solved, v_room int;
    declare v_max_leased, v_rate_limit int;
    declare v_rate_seconds double;
    declare v_last_claim_id bigint;
    declare v_is_paused boolean;
    declare v_leased_at datetime(6);

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

            call rowq.internal_check_range('batch_size', p_batch_size, 1, 1000);
            call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
            if char_length(p_worker_name) > 200 then
                call rowq.internal_refuse('worker_name is longer than 200 characters');
            elseif locate(x'ED', cast(p_worker_name as binary)) > 0 then
                call rowq.internal_check_text('worker_name', p_worker_name);
            end if;

            set p_claim_id = null, p_messages = null, p_json = null, v_part_id = null,
                v_room = p_batch_size, v_last_claim_id = null;
            select q.part_id, q.lease_seconds, q.paused_at is not null, q.max_leased, q.rate_limit,
                   q.rate_seconds
            into v_part_id, v_lease_seconds, v_is_paused, v_max_leased, v_rate_limit, v_rate_seconds
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            if v_is_paused then
                set v_room = 0;
            elseif v_max_leased + v_rate_limit > 0 then
                call rowq.internal_admit(
                    v_part_id, p_batch_size, v_max_leased, v_rate_limit, v_rate_seconds,
                    v_owns_transaction, v_room, v_last_claim_id
                );
            end if;
            if v_room > 0 then
                call rowq.internal_pop_ready(
                    v_part_id, v_room, v_owns_transaction, p_messages
                );
                if p_messages is null then
                    -- Nothing is ready: what has become due meanwhile need not wait for maintain,
                    -- nor what was left to be looked at again.
                    call rowq.internal_promote(
                        v_part_id, v_room, v_owns_transaction, v_promoted
                    );
                    call rowq.internal_recheck(
                        v_part_id, 10, v_owns_transaction, false, v_solved
                    );
                    if v_promoted + v_solved > 0 then
                        call rowq.internal_pop_ready(
                            v_part_id, v_room, v_owns_transaction, p_messages
                        );
                    end if;
                end if;
            end if;

            if p_messages is not null then
                set v_leased_at = utc_timestamp(6);
                set p_lease_until = v_leased_at
                    + interval coalesce(p_lease_seconds, v_lease_seconds) second;
                call rowq.internal_push_claim(
                    v_part_id, v_leased_at, p_lease_until, p_worker_name, p_messages, p_claim_id
                );
                if p_is_json then
                    call rowq.internal_trim_claim(
                        v_part_id, p_claim_id, p_lease_until, p_messages, p_json
                    );
                end if;
                if v_last_claim_id is not null and p_messages is not null then
                    call rowq.internal_note_start(
                        v_part_id, p_claim_id, v_last_claim_id, v_leased_at,
                        json_length(p_messages), v_rate_limit
                    );
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;
