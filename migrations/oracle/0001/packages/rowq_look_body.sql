-- Put together from the signatures of what role rowq_monitor may call by make generate.
create or replace package body rowq_look as

procedure health(p_rows out sys_refcursor)
is
begin
    rowq.health(
        p_rows => p_rows
    );
end health;

procedure list_dead(
    p_queue_name       in varchar2,
    p_after_message_id in number default 0,
    p_max_messages     in number default 100,
    p_rows             out sys_refcursor
)
is
begin
    rowq.list_dead(
        p_queue_name => p_queue_name,
        p_after_message_id => p_after_message_id,
        p_max_messages => p_max_messages,
        p_rows => p_rows
    );
end list_dead;

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

procedure version(p_rows out sys_refcursor)
is
begin
    rowq.version(
        p_rows => p_rows
    );
end version;

end rowq_look;
/
