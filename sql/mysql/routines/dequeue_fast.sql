drop procedure if exists rowq.dequeue_fast;

delimiter //
create procedure rowq.dequeue_fast(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int
)
sql security definer
modifies sql data
comment 'Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.'
begin
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
-- promise   P02 P03 P05 P06 P07 P13 P18
-- locks     ready rows, passing over locked ones; the part, shared; the new claim row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   the batch is held as a JSON array in the claim row
    declare v_claim_id bigint;
    declare v_lease_until datetime(6);
    declare v_messages, v_none longtext;

    call rowq.internal_dequeue(
        p_queue_name, coalesce(p_batch_size, 1), p_worker_name, p_lease_seconds, false,
        v_claim_id, v_lease_until, v_messages, v_none
    );

    -- Read with a lock, because the old snapshot of an open transaction does not show newer
    -- messages.
    select v_claim_id as claim_id, m.message_id, j.attempt,
           m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
           v_lease_until as lease_until, m.last_error
    from json_table(
        v_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            attempt int path '$[2]'
        )
    ) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    order by j.place
    /*!80000 for share of m */ /*M!100600 lock in share mode */;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;
