procedure maintain(
    p_queue_name in varchar2 default null,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   maintain
-- version   1
-- purpose   Run the maintenance of one queue or all; call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37 P49
-- locks     a row of lane of each queue and its due schedules, skipped if locked; as promote, reap
--           and archive; after an error a row of meta
-- commits   never; the caller owns the transaction. Partitions are dropped in an autonomous one
-- errors    RQ701 RQ711
-- differs   with more than 1000 queues, a call without a name maintains 1000 at random; an error in
--           one queue is kept for health, and the call continues with the next
    v_has_savepoint boolean;
    type t_names is table of rowq_queue.queue_name%type index by pls_integer;
    -- A dropped queue is an error only if the caller named it.
    e_gone exception;
    pragma exception_init(e_gone, -20701);
    -- ORA-01013: the user cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    c_most constant pls_integer := 1000;
    -- More than one batch of results and history runs only until then, for all queues: promoted and
    -- reaped messages wait for the end of the transaction.
    c_until constant timestamp(6) :=
        sys_extract_utc(systimestamp) + numtodsinterval(0.1, 'second');
    v_seed  pls_integer;
    v_names t_names;
    v_queue t_queue;
    v_error rowq_meta.value%type;
    v_kept  rowq_kept;
    v_rows  rowq_kept_list := rowq_kept_list();
    cursor some_queues is
        select q.queue_name
        from rowq_queue q
        order by ora_hash(q.queue_id, 4294967295, v_seed);
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    if p_queue_name is null then
        v_seed := trunc(internal_random_fraction * 1000000);
        open some_queues;
        fetch some_queues bulk collect into v_names limit c_most;
        close some_queues;
    else
        v_names(1) := p_queue_name;
    end if;

    for i in 1 .. v_names.count loop
        savepoint rowq_queue_part;
        begin
            v_queue := internal_require_queue(v_names(i));
            internal_maintain_queue(v_names(i), v_queue, p_batch_size, c_until, v_kept);
            v_rows.extend;
            v_rows(v_rows.last) := v_kept;
        exception
            when e_gone then
                if p_queue_name is not null then
                    raise;
                end if;
            when e_cancelled then
                raise;
            when others then
                if p_queue_name is not null then
                    raise;
                end if;
                -- A failed queue does not stop the others.
                v_error := substr('maintain of ' || v_names(i) || ': ' || sqlerrm, 1, 500);
                rollback to savepoint rowq_queue_part;
                internal_record_maintain_error(v_queue.queue_id, v_error);
        end;
    end loop;

    open p_rows for
        select n.queue_name, n.elected, n.promoted, n.reaped, n.died, n.archived, n.purged,
               n.partitions_dropped, n.expired
        from table(v_rows) n;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end maintain;
