-- Jobs are selected for update, passing over locked ones, then marked. The index gives their order,
-- so a row is locked when it is fetched, and the fetch is what bounds the batch.
-- like: for_update.sql

-- name: procedure
create procedure get_jobs(p_limit in number, p_rows out sys_refcursor)
is
    type t_rowids is table of rowid;
    cursor free_jobs is
        -- part: job
        from job j
        where j.state = 'N'
        order by j.create_time, j.job_id
        for update skip locked;
    v_found t_rowids;
    v_ids   job_ids := job_ids();
begin
    open free_jobs;
    fetch free_jobs bulk collect into v_found limit p_limit;
    close free_jobs;

    forall i in 1 .. v_found.count
        update job j
        set j.state = 'A'
        where j.rowid = v_found(i)
          and j.state = 'N'
        returning j.job_id bulk collect into v_ids;

    open p_rows for
        select /*+ leading(x) use_nl(j) index(j job_pk) */ j.job_id, j.body
        from table(v_ids) x
        join job j on j.job_id = x.column_value;
end get_jobs;
/

-- name: job
select /*+ index_rs_asc(j job_ix) no_batch_table_access_by_rowid(j) */ j.rowid
