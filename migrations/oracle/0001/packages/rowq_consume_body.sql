-- Put together from the signatures of what role rowq_consumer may call by make generate.
create or replace package body rowq_consume as

function ids(p_ids in rowq_ids)
return clob
is
begin
    return rowq.ids(
        p_ids => p_ids
    );
end ids;

procedure archive(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.archive(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end archive;

procedure complete(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_rows        out sys_refcursor
)
is
begin
    rowq.complete(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_message_ids => p_message_ids,
        p_rows => p_rows
    );
end complete;

procedure dequeue_fast(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_rows          out sys_refcursor
)
is
begin
    rowq.dequeue_fast(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_worker_name => p_worker_name,
        p_lease_seconds => p_lease_seconds,
        p_rows => p_rows
    );
end dequeue_fast;

procedure dequeue_wait(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_wait_seconds  in number default 20,
    p_rows          out sys_refcursor
)
is
begin
    rowq.dequeue_wait(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_worker_name => p_worker_name,
        p_lease_seconds => p_lease_seconds,
        p_wait_seconds => p_wait_seconds,
        p_rows => p_rows
    );
end dequeue_wait;

procedure extend_lease(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_lease_seconds in number default null,
    p_rows          out sys_refcursor
)
is
begin
    rowq.extend_lease(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_lease_seconds => p_lease_seconds,
        p_rows => p_rows
    );
end extend_lease;

procedure fail_now(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_error       in clob default null,
    p_rows        out sys_refcursor
)
is
begin
    rowq.fail_now(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_message_ids => p_message_ids,
        p_error => p_error,
        p_rows => p_rows
    );
end fail_now;

procedure maintain(
    p_queue_name in varchar2 default null,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.maintain(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end maintain;

procedure peek(
    p_queue_name in varchar2,
    p_batch_size in number default 1,
    p_rows       out sys_refcursor
)
is
begin
    rowq.peek(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end peek;

procedure promote(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.promote(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end promote;

procedure queue_stats(
    p_queue_name in varchar2 default null,
    p_max_count  in number default 100000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.queue_stats(
        p_queue_name => p_queue_name,
        p_max_count => p_max_count,
        p_rows => p_rows
    );
end queue_stats;

procedure reap(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.reap(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end reap;

procedure release(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_rows        out sys_refcursor
)
is
begin
    rowq.release(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_message_ids => p_message_ids,
        p_rows => p_rows
    );
end release;

procedure retry_later(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_message_ids   in clob default null,
    p_delay_seconds in number default null,
    p_error         in clob default null,
    p_rows          out sys_refcursor
)
is
begin
    rowq.retry_later(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_message_ids => p_message_ids,
        p_delay_seconds => p_delay_seconds,
        p_error => p_error,
        p_rows => p_rows
    );
end retry_later;

procedure version(p_rows out sys_refcursor)
is
begin
    rowq.version(
        p_rows => p_rows
    );
end version;

end rowq_consume;
/
