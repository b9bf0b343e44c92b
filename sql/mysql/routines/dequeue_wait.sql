drop procedure if exists rowq.dequeue_wait;

delimiter //
create procedure rowq.dequeue_wait(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int,
    p_wait_seconds double
)
sql security definer
modifies sql data
comment 'Dequeue like dequeue_fast, but wait until a message is ready or the time is up.'
begin
-- routine   dequeue_wait
-- version   1
-- purpose   Dequeue like dequeue_fast, but wait until a message is ready or the time is up.
-- promise   P03 P17
-- locks     as dequeue_fast; a row of lane while it sleeps, skipped if locked
-- commits   after each poll, so that no snapshot is held while it waits; needs autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array, in a result set of one column
    declare v_claim_id bigint;
    declare v_lease_until, v_until datetime(6);
    declare v_messages, v_json longtext;
    declare v_queue_id int;
    declare v_wait_seconds double default coalesce(p_wait_seconds, 20);
    declare v_pause double default 0.02;
    -- If a transaction is open, "set transaction" fails with 1568.
    declare exit handler for 1568
    begin
        signal sqlstate '45713'
            set message_text = 'RQ713 wrong_transaction_state: '
                'dequeue_wait commits while it waits; call it outside a transaction';
    end;
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_check_range('wait_seconds', v_wait_seconds, 0, 3600);
    if @@autocommit = 0 then
        signal sqlstate '45713'
            set message_text = 'RQ713 wrong_transaction_state: dequeue_wait requires autocommit';
    end if;
    set transaction isolation level read committed;

    polls: loop
        call rowq.internal_dequeue(
            p_queue_name, coalesce(p_batch_size, 1), p_worker_name, p_lease_seconds, true,
            v_claim_id, v_lease_until, v_messages, v_json
        );
        if v_until is null then
            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            -- Read the clock after the first poll, which resets it if the caller has set it.
            set v_until = utc_timestamp(6)
                + interval round(v_wait_seconds * 1000000) microsecond;
        end if;
        if v_claim_id is not null and v_json is null then
            -- All messages of this claim were too long for an answer and are dead now: poll again.
            iterate polls;
        end if;
        if v_json is not null or utc_timestamp(6) >= v_until then
            leave polls;
        end if;
        call rowq.internal_wait(v_queue_id, v_until, v_pause);
    end loop;

    select v_json as messages;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
