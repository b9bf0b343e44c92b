drop procedure if exists rowq.extend_lease;

delimiter //
create procedure rowq.extend_lease(
    p_queue_name longtext,
    p_claim_id bigint,
    p_lease_seconds int,
    p_progress longtext
)
sql security definer
modifies sql data
comment 'Extend the lease of a claim to lease_seconds from now; it is never shortened.'
begin
-- routine   extend_lease
-- version   1
-- purpose   Extend the lease of a claim to lease_seconds from now; it is never shortened.
-- promise   P08 P34
-- locks     the claim row
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_lease_seconds int;
    declare v_claim_id bigint;
    declare v_lease_until datetime(6);
    declare v_cancel_ids longtext;

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

            if p_claim_id is null then
                call rowq.internal_refuse('claim_id is required');
            end if;
            call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
            if locate(x'ED', cast(p_progress as binary)) > 0 then
                call rowq.internal_check_text('progress', p_progress);
            end if;

            set v_queue_id = null, v_lease_until = null, v_claim_id = p_claim_id;
            select q.queue_id, coalesce(p_lease_seconds, q.lease_seconds)
            into v_queue_id, v_lease_seconds
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_queue_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            if not v_owns_transaction then
                call rowq.internal_bound_gap(v_queue_id, v_claim_id);
            end if;
            select c.lease_until, c.cancel_ids into v_lease_until, v_cancel_ids
            from rowq.claim c force index (primary)
            where c.queue_id = v_queue_id
              and c.claim_id = v_claim_id
              and c.claim_id > 0
            for update;
            if v_lease_until is null then
                call rowq.internal_refuse_claim(p_claim_id);
            end if;
            set v_lease_until = greatest(
                v_lease_until, utc_timestamp(6) + interval v_lease_seconds second
            );
            update rowq.claim c force index (primary)
            set c.lease_until = v_lease_until,
                c.progress = coalesce(left(p_progress, 2000), c.progress)
            where c.queue_id = v_queue_id
              and c.claim_id = p_claim_id;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_claim_id as claim_id, v_lease_until as lease_until, v_cancel_ids as cancel_ids;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
