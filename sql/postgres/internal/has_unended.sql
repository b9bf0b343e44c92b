create or replace function rowq.internal_has_unended(
    p_part_id     integer,
    p_message_ids bigint[],
    p_on_dead     text
)
returns boolean
language plpgsql
as $$
-- routine   internal_has_unended
-- purpose   Say whether one of these predecessors has not ended, as far as a plain look shows.
-- promise   P25
declare
    v_from constant bigint := rowq.internal_read_floor(p_part_id, -3::smallint /* finished */);
begin
    -- "offset 0" keeps this a lookup by key for one message after the other.
    return exists (
        select
        from unnest(p_message_ids) u (message_id)
        cross join lateral (
            select
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = u.message_id
            offset 0
        ) h
        where not (
            p_on_dead is not distinct from 'continue' and exists (
                select
                from rowq.dead d
                where d.part_id = p_part_id
                  and d.message_id = u.message_id
            )
        )
          and u.message_id not in (
              select unnest(f.message_ids)
              from rowq.finished f
              where f.part_id = p_part_id
                and f.finish_id >= v_from
          )
    );
end;
$$;
