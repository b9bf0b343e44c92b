function internal_lock_bindings(p_queue_name in varchar2)
return t_queue
is
-- routine   internal_lock_bindings
-- purpose   Return the settings of a queue, and keep it from being dropped.
-- promise   P15
-- locks     the table of bindings against drop_queue; waits for one that is under way
-- errors    RQ701 RQ711
-- differs   this engine's own: elsewhere a row of the queue or of its part is locked
begin
    -- The look after this one sees what a drop has left that this session has waited for.
    lock table rowq_topic_binding in row exclusive mode;
    return internal_require_queue(p_queue_name);
end internal_lock_bindings;
