-- Put together from ../routines and ../helpers by make generate.
create or replace package rowq authid definer as

    function ids(p_ids in rowq_ids)
    return clob;

    procedure alter_queue(
        p_queue_name           in varchar2,
        p_lease_seconds        in number default null,
        p_max_attempts         in number default null,
        p_backoff_base_seconds in number default null,
        p_backoff_factor       in number default null,
        p_backoff_cap_seconds  in number default null,
        p_backoff_jitter       in number default null,
        p_archive_days         in number default null,
        p_max_body_length      in number default null,
        p_rows                 out sys_refcursor
    );

    procedure archive(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    procedure cancel(
        p_queue_name  in varchar2,
        p_message_ids in clob,
        p_rows        out sys_refcursor
    );

    procedure complete(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_rows        out sys_refcursor
    );

    procedure create_queue(
        p_queue_name           in varchar2,
        p_lease_seconds        in number default null,
        p_max_attempts         in number default null,
        p_backoff_base_seconds in number default null,
        p_backoff_factor       in number default null,
        p_backoff_cap_seconds  in number default null,
        p_backoff_jitter       in number default null,
        p_archive_days         in number default null,
        p_max_body_length      in number default null,
        p_rows                 out sys_refcursor
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

    procedure drop_queue(
        p_queue_name in varchar2,
        p_force      in number default 0,
        p_rows       out sys_refcursor
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

    procedure get_message(
        p_queue_name in varchar2,
        p_message_id in number,
        p_rows       out sys_refcursor
    );

    procedure health(p_rows out sys_refcursor);

    procedure list_dead(
        p_queue_name       in varchar2,
        p_after_message_id in number default 0,
        p_max_messages     in number default 100,
        p_rows             out sys_refcursor
    );

    procedure maintain(
        p_queue_name in varchar2 default null,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    procedure pause_queue(
        p_queue_name in varchar2,
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

    procedure purge_archive(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    procedure purge_queue(
        p_queue_name   in varchar2,
        p_include_dead in number default 0,
        p_max_messages in number default null,
        p_rows         out sys_refcursor
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

    procedure reset(
        p_queue_name   in varchar2,
        p_message_ids  in clob default null,
        p_max_messages in number default 1000,
        p_rows         out sys_refcursor
    );

    procedure resume_queue(
        p_queue_name in varchar2,
        p_rows       out sys_refcursor
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

end rowq;
/
