-- Write an invoice for each of up to 100 orders, in one transaction with rowq's calls, so each invoice
-- is written exactly once. A failed order is rolled back alone, and retried after the queue's delay.
do $$
declare
    v_message record;
begin
    for v_message in select * from rowq.dequeue_fast('orders', 100) loop
        begin
            insert into invoice
            select * from json_populate_record(null::invoice, v_message.body::json);
            perform rowq.complete('orders', v_message.claim_id, array[v_message.message_id]);
        exception when others then
            perform rowq.retry_later(
                'orders', v_message.claim_id, array[v_message.message_id], p_error => sqlerrm
            );
        end;
    end loop;
end
$$;
