create or replace function rowq.internal_enter_group(p_part_id integer, p_group_key text)
returns boolean
language plpgsql
as $$
-- routine   internal_enter_group
-- purpose   Take a token of a group: true with one, false where the message has to wait behind others.
-- promise   P21 P22 P24
-- locks     a new message_group row, or the group's, shared; waits for who opens or closes it
declare
    v_has_token boolean;
    v_limit     integer;
    v_tokens    integer;
begin
    loop
        select q.group_limit into v_limit
        from rowq.queue q
        where q.part_id = p_part_id;

        -- Take the first free number. The count keeps a limit that was lowered.
        insert into rowq.message_group (part_id, group_key, token_no)
        select p_part_id, p_group_key, n.token_no
        from (
            select min(s.token_no) as token_no
            from generate_series(1, v_limit) s (token_no)
            where not exists (
                select
                from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = p_group_key
                  and x.token_no = s.token_no
            )
        ) n
        where n.token_no is not null
          and v_limit > (
              select count(*)
              from rowq.message_group x
              where x.part_id = p_part_id
                and x.group_key = p_group_key
          )
        on conflict (part_id, group_key, token_no) do nothing;
        v_has_token := found;
        exit when v_has_token;

        -- Hold the tokens to the end of the transaction: whoever would give the last one back knows
        -- by this that a message is coming.
        select count(*) into v_tokens
        from (
            select
            from rowq.message_group x
            where x.part_id = p_part_id
              and x.group_key = p_group_key
            for key share
        ) h;
        exit when v_tokens >= v_limit;
        -- A token was given back in between: try once more.
    end loop;
    return v_has_token;
end;
$$;
