procedure internal_refuse_queue(p_queue_name in varchar2)
is
-- routine   internal_refuse_queue
-- purpose   Raise the error for a queue name that is missing or unknown.
-- promise   P15
-- errors    RQ701 RQ711
begin
    if p_queue_name is null then
        internal_refuse('queue_name is missing');
    end if;
    raise_application_error(-20701, 'RQ701 queue_not_found: ' || substr(p_queue_name, 1, 100));
end internal_refuse_queue;
