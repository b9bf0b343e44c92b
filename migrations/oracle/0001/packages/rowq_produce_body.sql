-- Put together from the signatures of what role rowq_producer may call by make generate.
create or replace package body rowq_produce as

function ids(p_ids in rowq_ids)
return clob
is
begin
    return rowq.ids(
        p_ids => p_ids
    );
end ids;

procedure cancel(
    p_queue_name  in varchar2,
    p_message_ids in clob,
    p_rows        out sys_refcursor
)
is
begin
    rowq.cancel(
        p_queue_name => p_queue_name,
        p_message_ids => p_message_ids,
        p_rows => p_rows
    );
end cancel;

procedure enqueue(
    p_queue_name    in varchar2,
    p_body          in clob default null,
    p_body_binary   in blob default null,
    p_message_type  in varchar2 default null,
    p_headers       in clob default null,
    p_priority      in number default 5,
    p_delay_seconds in number default null,
    p_run_at        in timestamp default null,
    p_dedup_key     in varchar2 default null,
    p_max_attempts  in number default null,
    p_rows          out sys_refcursor
)
is
begin
    rowq.enqueue(
        p_queue_name => p_queue_name,
        p_body => p_body,
        p_body_binary => p_body_binary,
        p_message_type => p_message_type,
        p_headers => p_headers,
        p_priority => p_priority,
        p_delay_seconds => p_delay_seconds,
        p_run_at => p_run_at,
        p_dedup_key => p_dedup_key,
        p_max_attempts => p_max_attempts,
        p_rows => p_rows
    );
end enqueue;

procedure enqueue_batch(
    p_queue_name in varchar2,
    p_messages   in clob,
    p_rows       out sys_refcursor
)
is
begin
    rowq.enqueue_batch(
        p_queue_name => p_queue_name,
        p_messages => p_messages,
        p_rows => p_rows
    );
end enqueue_batch;

procedure version(p_rows out sys_refcursor)
is
begin
    rowq.version(
        p_rows => p_rows
    );
end version;

end rowq_produce;
/
