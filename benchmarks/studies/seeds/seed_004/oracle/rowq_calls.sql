-- rowq's routines as the executors of seed 004 call them.

-- name: dequeue
begin
    rowq.dequeue_fast(
        p_queue_name => 'bench', p_batch_size => :batch, p_worker_name => 'bench',
        p_lease_seconds => 600, p_rows => :rows
    );
end;

-- name: complete_one
begin
    rowq.complete(
        p_queue_name => 'bench', p_claim_id => :claim,
        p_message_ids => '[' || to_char(:message, 'fm9999999999999999999') || ']', p_rows => :rows
    );
end;

-- name: complete
begin
    rowq.complete(p_queue_name => 'bench', p_claim_id => :claim, p_rows => :rows);
end;
