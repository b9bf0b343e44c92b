create or replace function rowq.internal_note_cancels(p_part_id integer, p_message_ids bigint[])
returns bigint[]
language plpgsql
as $$
-- routine   internal_note_cancels
-- purpose   Note in the claims that hold these messages that they were cancelled; return those noted.
-- promise   P34
-- locks     claim rows, passing over locked ones
declare
    -- Begin at the safe floor, because a claim that was committed late may hold one of them.
    v_from     constant bigint := rowq.internal_read_safe_floor(
        p_part_id, -1::smallint /* claim */
    );
    v_claim_id bigint;
    v_ids      bigint[];
    v_noted    bigint[] := '{}'::bigint[];
begin
    for v_claim_id in
        select c.claim_id
        from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id >= v_from
          and exists (
              select 1
              from unnest(c.message_ids) u (message_id)
              where u.message_id = any (p_message_ids)
          )
        order by c.part_id, c.claim_id
        for update skip locked
    loop
        update rowq.claim c
        set cancel_ids = array(
                select u.message_id
                from unnest(c.message_ids) u (message_id)
                where u.message_id = any (p_message_ids)
                   or u.message_id = any (c.cancel_ids)
            )
        where c.part_id = p_part_id
          and c.claim_id = v_claim_id
        returning c.cancel_ids into v_ids;
        v_noted := v_noted || v_ids;
    end loop;
    return v_noted;
end;
$$;
