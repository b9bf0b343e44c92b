create or replace function rowq.list_topics(p_queue_name text default null)
returns table (queue_name text, topic_pattern text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   list_topics
-- version   1
-- purpose   List the topic patterns of one queue or all, by queue name.
-- promise   P35
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
#variable_conflict use_column
begin
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;

    return query
    select q.queue_name, b.topic_pattern
    from rowq.topic_binding b
    join rowq.queue q on q.queue_id = b.queue_id
    where p_queue_name is null
       or q.queue_name = p_queue_name
    order by q.queue_name collate "C", b.topic_pattern collate "C";
end;
$$;
