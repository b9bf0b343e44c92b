create or replace function rowq.internal_await_predecessor(
    p_part_id         integer,
    p_message_id      bigint,
    p_predecessor_ids bigint[],
    p_on_dead         text,
    p_most_looks      integer default null,
    out o_state          text,
    out o_predecessor_id bigint,
    out o_rest_ids       bigint[],
    out o_looks          integer
)
language plpgsql
as $$
-- routine   internal_await_predecessor
-- purpose   Let a message wait for the newest of these, in order, that has not ended: waiting, free, failed, unsure where another transaction has locked it, or cut after p_most_looks of them.
-- promise   P25 P26 P27
-- locks     the predecessor's message row, tried only; a new successor row
declare
    v_has_successors boolean;
    v_is_held        boolean;
    v_is_dead        boolean;
    v_place          integer;
    v_first_place    integer;
    v_from           bigint;
begin
    o_looks := 0;
    loop
        v_first_place := greatest(
            coalesce(cardinality(p_predecessor_ids) - p_most_looks + o_looks, 0), 0
        ) + 1;
        -- "offset 0" keeps this a lookup by key for one message after the other, which ends with
        -- the first that is there.
        select u.message_id, u.place, h.has_successors
        into o_predecessor_id, v_place, v_has_successors
        from (
            select x.message_id, v_first_place - 1 + x.place as place
            from unnest(p_predecessor_ids[v_first_place:]) with ordinality x (message_id, place)
            order by x.place desc
            offset 0
        ) u
        cross join lateral (
            select m.has_successors
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = u.message_id
            offset 0
        ) h
        limit 1;
        if not found then
            o_looks := o_looks + cardinality(p_predecessor_ids) - v_first_place + 1;
            o_state := case when v_first_place = 1 then 'free' else 'cut' end;
            v_place := v_first_place - 1;
            exit;
        end if;
        o_looks := o_looks + cardinality(p_predecessor_ids) - v_place + 1;

        -- Hold the row to the end of the transaction: a call that ends the predecessor leaves the
        -- row to maintain meanwhile. This one waits for nobody: a row that no transaction has ever
        -- locked has xmax 0.
        update rowq.message m
        set has_successors = true
        where m.part_id = p_part_id
          and m.message_id = o_predecessor_id
          and m.xmax = 0
          and v_has_successors is not true;
        v_is_held := found;
        if v_is_held then
            v_has_successors := true;
        else
            select m.has_successors into v_has_successors
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = o_predecessor_id
            for key share skip locked;
            v_is_held := found;
        end if;
        if not v_is_held then
            continue when not exists (
                select
                from rowq.message m
                where m.part_id = p_part_id
                  and m.message_id = o_predecessor_id
            );
            o_state := 'unsure';
            exit;
        end if;

        -- The archive keeps the message row for a while. Where the end is not seen here, the
        -- archiver frees what waits when it deletes the row.
        v_is_dead := p_on_dead in ('continue', 'fail') and exists (
            select
            from rowq.dead d
            where d.part_id = p_part_id
              and d.message_id = o_predecessor_id
        );
        v_from := rowq.internal_read_floor(p_part_id, -3::smallint /* finished */);
        if v_is_dead and p_on_dead = 'continue' or exists (
            select
            from rowq.finished f
            where f.part_id = p_part_id
              and f.finish_id >= v_from
              and o_predecessor_id = any (f.message_ids)
        ) then
            -- Thousands may have ended since the archiver was here: leave all of them out at once.
            p_predecessor_ids := array(
                select u.message_id
                from unnest(p_predecessor_ids[:v_place - 1]) u (message_id)
                where u.message_id not in (
                    select unnest(f.message_ids)
                    from rowq.finished f
                    where f.part_id = p_part_id
                      and f.finish_id >= v_from
                )
                order by u.message_id
            );
            continue;
        elsif v_is_dead then
            o_state := 'failed';
            exit;
        end if;

        o_state := 'waiting';
        if v_has_successors is not true then
            perform
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = o_predecessor_id
            for no key update skip locked;
            if found then
                update rowq.message m
                set has_successors = true
                where m.part_id = p_part_id
                  and m.message_id = o_predecessor_id;
            else
                o_state := 'unsure';
            end if;
        end if;
        exit;
    end loop;

    if o_state = 'waiting' then
        insert into rowq.successor (part_id, predecessor_id, message_id)
        values (p_part_id, o_predecessor_id, p_message_id)
        on conflict do nothing;
        o_rest_ids := nullif(p_predecessor_ids[:v_place - 1], '{}');
    elsif o_state in ('unsure', 'cut') then
        o_predecessor_id := null;
        o_rest_ids := p_predecessor_ids[:v_place];
    end if;
end;
$$;
