-- Put together from the signatures of what role rowq_consumer may call by make generate.
create or replace package rowq_consume authid definer as

    function ids(p_ids in rowq_ids)
    return clob;

    procedure archive(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    procedure complete(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_rows        out sys_refcursor
    );

    procedure dequeue_fast(
        p_queue_name    in varchar2,
        p_batch_size    in number default 1,
        p_worker_name   in varchar2 default null,
        p_lease_seconds in number default null,
        p_rows          out sys_refcursor
    );

    procedure dequeue_wait(
        p_queue_name    in varchar2,
        p_batch_size    in number default 1,
        p_worker_name   in varchar2 default null,
        p_lease_seconds in number default null,
        p_wait_seconds  in number default 20,
        p_rows          out sys_refcursor
    );

    procedure extend_lease(
        p_queue_name    in varchar2,
        p_claim_id      in number,
        p_lease_seconds in number default null,
        p_rows          out sys_refcursor
    );

    procedure fail_now(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_error       in clob default null,
        p_rows        out sys_refcursor
    );

    procedure maintain(
        p_queue_name in varchar2 default null,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    procedure peek(
        p_queue_name in varchar2,
        p_batch_size in number default 1,
        p_rows       out sys_refcursor
    );

    procedure promote(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    procedure queue_stats(
        p_queue_name in varchar2 default null,
        p_max_count  in number default 100000,
        p_rows       out sys_refcursor
    );

    procedure reap(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    procedure release(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_rows        out sys_refcursor
    );

    procedure retry_later(
        p_queue_name    in varchar2,
        p_claim_id      in number,
        p_message_ids   in clob default null,
        p_delay_seconds in number default null,
        p_error         in clob default null,
        p_rows          out sys_refcursor
    );

    procedure version(p_rows out sys_refcursor);

end rowq_consume;
/
