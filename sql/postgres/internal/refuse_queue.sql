create or replace function rowq.internal_refuse_queue(p_queue_name text)
returns void
language plpgsql
as $$
-- routine   internal_refuse_queue
-- purpose   Raise the error for a queue name that is missing or unknown.
-- promise   P15
-- errors    RQ701 RQ711
begin
    if p_queue_name is null then
        raise exception 'RQ711 invalid_argument: queue_name is missing'
            using errcode = 'RQ711';
    end if;
    raise exception 'RQ701 queue_not_found: %', left(p_queue_name, 100)
        using errcode = 'RQ701';
end;
$$;
