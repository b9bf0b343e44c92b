create or replace function rowq.after_failover()
returns table (name text, was bigint, is_now bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
as $$
-- routine   after_failover
-- version   1
-- purpose   Continue numbers far beyond those that another server may have given out.
-- promise   P08 P46
-- locks     the row channel of meta, until the caller's transaction ends; no worker or producer
--           waits for it
-- commits   never; the caller owns the transaction. A rollback leaves the sequences where they are
-- errors    none
-- differs   maintain does the same if a sequence is behind the floors
#variable_conflict use_column
begin
    return query
    select n.name, n.was, n.is_now
    from rowq.internal_advance_numbers(true) n;
end;
$$;
