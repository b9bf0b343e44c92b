-- Jobs are selected, then marked, in one transaction but without a lock on what was selected.
-- like: for_update.sql

-- name: choice
select y.job_id
bulk collect into v_ids
from (
    select /*+ index_rs_asc(x job_ix) */ x.job_id
    from job x
    where x.state = 'N'
    order by x.create_time, x.job_id
) y
where rownum <= p_limit;
