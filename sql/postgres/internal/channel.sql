create or replace function rowq.internal_channel(p_part_id integer)
returns text
language plpgsql
as $$
-- routine   internal_channel
-- purpose   Return the channel of a queue's notifications, which no account without a role can name.
-- differs   this engine's own
begin
    return (
        select m.value || '_' || p_part_id
        from rowq.meta m
        where m.name = 'channel'
    );
end;
$$;
