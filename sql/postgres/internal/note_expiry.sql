create or replace function rowq.internal_note_expiry(p_part_id integer, p_message_ids bigint[])
returns void
language plpgsql
as $$
-- routine   internal_note_expiry
-- purpose   Let maintain look again for those of the messages that expire, which have come to wait elsewhere than in ready.
-- promise   P36
-- locks     new expiry rows
begin
    -- Only a queue that has had messages that expire has this lane, and without it the messages are
    -- not looked up. A row has no moment before now, as internal_newest_number wants it.
    insert into rowq.expiry (part_id, expires_at, message_id)
    select p_part_id, greatest(m.expires_at, clock_timestamp()), u.message_id
    from unnest(p_message_ids) u (message_id)
    cross join lateral (
        select case
                   when x.expires_at is not null
                       then least(x.expires_at, clock_timestamp() + interval '1 day')
               end as expires_at
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    where m.expires_at is not null
      and exists (
          select
          from rowq.floor f
          where f.part_id = p_part_id
            and f.lane = -6 /* expiry */
      );
end;
$$;
