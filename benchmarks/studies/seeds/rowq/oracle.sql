-- rowq's routines as a client calls them.

-- name: create
begin
    rowq.create_queue(p_queue_name => 'bench', p_rows => :rows);
end;

-- name: enqueue
begin
    rowq.enqueue(p_queue_name => 'bench', p_body => :body, p_rows => :rows);
end;

-- name: fill
begin
    rowq.enqueue_batch(p_queue_name => 'bench', p_messages => :messages, p_rows => :rows);
end;

-- name: enqueue_after
begin
    rowq.enqueue(
        p_queue_name => 'bench', p_body => :body,
        p_predecessor_ids => case
            when :predecessor > 0 then '[' || to_char(:predecessor, 'fm9999999999999999999') || ']'
        end,
        p_rows => :rows
    );
end;

-- name: fill_chains
begin
    rowq.enqueue_batch(p_queue_name => 'bench', p_messages => :messages, p_rows => :rows);
end;

-- name: dequeue
begin
    rowq.dequeue_fast(
        p_queue_name => 'bench', p_batch_size => :batch, p_worker_name => 'bench',
        p_lease_seconds => 600, p_rows => :rows
    );
end;

-- name: complete
begin
    rowq.complete(p_queue_name => 'bench', p_claim_id => :claim, p_rows => :rows);
end;

-- name: complete_one
begin
    rowq.complete(
        p_queue_name => 'bench', p_claim_id => :claim,
        p_message_ids => '[' || to_char(:message, 'fm9999999999999999999') || ']', p_rows => :rows
    );
end;

-- name: maintain
begin
    rowq.maintain(p_rows => :rows);
end;
