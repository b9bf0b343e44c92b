-- Put together from the signatures of what role rowq_producer may call by make generate.
create or replace package rowq_produce authid definer as

    function ids(p_ids in rowq_ids)
    return clob;

    procedure cancel(
        p_queue_name  in varchar2,
        p_message_ids in clob,
        p_rows        out sys_refcursor
    );

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
    );

    procedure enqueue_batch(
        p_queue_name in varchar2,
        p_messages   in clob,
        p_rows       out sys_refcursor
    );

    procedure version(p_rows out sys_refcursor);

end rowq_produce;
/
