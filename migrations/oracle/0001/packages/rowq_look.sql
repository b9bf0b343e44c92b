-- Put together from the signatures of what role rowq_monitor may call by make generate.
create or replace package rowq_look authid definer as

    procedure health(p_rows out sys_refcursor);

    procedure list_dead(
        p_queue_name       in varchar2,
        p_after_message_id in number default 0,
        p_max_messages     in number default 100,
        p_rows             out sys_refcursor
    );

    procedure queue_stats(
        p_queue_name in varchar2 default null,
        p_max_count  in number default 100000,
        p_rows       out sys_refcursor
    );

    procedure version(p_rows out sys_refcursor);

end rowq_look;
/
