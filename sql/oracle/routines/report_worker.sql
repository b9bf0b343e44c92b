procedure report_worker(
    p_queue_name     in varchar2,
    p_worker_id      in varchar2,
    p_worker_name    in varchar2 default null,
    p_host_name      in varchar2 default null,
    p_worker_version in varchar2 default null,
    p_threads        in number default 1,
    p_completed      in number default 0,
    p_failed         in number default 0,
    p_is_ended       in number default 0,
    p_rows           out sys_refcursor
)
is
-- routine   report_worker
-- version   1
-- purpose   Report that a worker runs, with its totals; call it about every 10 seconds.
-- promise   P15
-- locks     the worker's row; the row of one gone worker, skipping locked ones; a new row waits for
--           drop_queue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    c_most    constant number := 9007199254740992;
    c_allowed constant varchar2(100 char) :=
        'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-';
    -- ORA-02291: the queue was dropped.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    v_now           constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue         t_queue;
    v_key           raw(64);
    v_seconds       number;
    v_row_id        rowid;
    v_last_seen_at  timestamp(6);
    v_completed     number;
    v_failed        number;
    v_deleted       t_row_ids;
    v_has_savepoint boolean;
    cursor own is
        select w.rowid, w.last_seen_at, w.completed, w.failed
        from rowq_worker w
        where w.queue_id = v_queue.queue_id
          and w.worker_key = v_key;
    cursor gone is
        select w.rowid
        from rowq_worker w
        where w.queue_id = v_queue.queue_id
          and w.last_seen_at < v_now - interval '1' hour
        for update skip locked;
begin
    internal_begin_work(v_has_savepoint);
    if p_worker_id is null
        or length(p_worker_id) > 64
        or replace(translate(p_worker_id, c_allowed, rpad('.', length(c_allowed), '.')), '.')
           is not null then
        internal_refuse('worker_id must be 1 to 64 letters, digits, -, _, . or :');
    end if;
    if length(p_worker_name) > 200
        or length(p_host_name) > 200
        or length(p_worker_version) > 200 then
        internal_refuse(
            'worker_name, host_name and worker_version must be at most 200 characters'
        );
    end if;
    internal_check_whole('threads', p_threads, 1, 100000);
    internal_check_whole('completed', p_completed, 0, c_most);
    internal_check_whole('failed', p_failed, 0, c_most);
    v_queue := internal_require_queue(p_queue_name);
    v_key := utl_raw.cast_to_raw(p_worker_id);

    if p_is_ended = 1 then
        select w.rowid bulk collect into v_deleted
        from rowq_worker w
        where w.queue_id = v_queue.queue_id
          and w.worker_key = v_key;
    else
        open own;
        fetch own into v_row_id, v_last_seen_at, v_completed, v_failed;
        close own;
        if v_row_id is null then
            begin
                insert into rowq_worker (
                    queue_id, worker_key, worker_id, worker_name, host_name, worker_version,
                    threads, started_at, last_seen_at, completed, failed
                )
                values (
                    v_queue.queue_id, v_key, p_worker_id, p_worker_name, p_host_name,
                    p_worker_version, coalesce(p_threads, 1), v_now, v_now,
                    coalesce(p_completed, 0), coalesce(p_failed, 0)
                );
            exception
                when e_no_queue then
                    internal_refuse_queue(p_queue_name);
            end;
        else
            v_seconds := (
                internal_microseconds(v_now) - internal_microseconds(v_last_seen_at)
            ) / 1000000;
            update rowq_worker w
            set w.worker_name          = p_worker_name,
                w.host_name            = p_host_name,
                w.worker_version       = p_worker_version,
                w.threads              = coalesce(p_threads, 1),
                w.last_seen_at         = greatest(v_now, v_last_seen_at),
                w.completed            = coalesce(p_completed, 0),
                w.failed               = coalesce(p_failed, 0),
                w.completed_per_second = case
                    when v_seconds > 0
                        then greatest(coalesce(p_completed, 0) - v_completed, 0) / v_seconds
                    else w.completed_per_second
                end,
                w.failed_per_second    = case
                    when v_seconds > 0
                        then greatest(coalesce(p_failed, 0) - v_failed, 0) / v_seconds
                    else w.failed_per_second
                end
            where w.rowid = v_row_id;
        end if;

        -- Delete at most one row per report, so that no report takes long.
        open gone;
        fetch gone bulk collect into v_deleted limit 1;
        close gone;
    end if;
    forall i in 1 .. v_deleted.count
        delete from rowq_worker w where w.rowid = v_deleted(i);

    open p_rows for
        select p_queue_name as queue_name,
               case when p_is_ended = 1 then 'ended' else 'reported' end as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end report_worker;
