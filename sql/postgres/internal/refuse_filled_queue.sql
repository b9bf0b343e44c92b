create or replace function rowq.internal_refuse_filled_queue(
    p_part_id    integer,
    p_queue_name text,
    p_force      boolean
)
returns void
language plpgsql
as $$
-- routine   internal_refuse_filled_queue
-- purpose   Refuse to drop a queue that has messages or an archive, unless it is to be forced.
-- promise   P02
-- errors    RQ704
begin
    if not coalesce(p_force, false) and (
        exists (select 1 from rowq.message m where m.part_id = p_part_id)
        or exists (select 1 from rowq.archive a where a.part_id = p_part_id)
    ) then
        raise exception 'RQ704 queue_not_empty: % has messages or an archive; force drops them too',
            p_queue_name
            using errcode = 'RQ704';
    end if;
end;
$$;
