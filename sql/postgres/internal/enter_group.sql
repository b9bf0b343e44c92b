create or replace function rowq.internal_enter_group(
    p_part_id     integer,
    p_group_key   text,
    p_group_limit integer default null
)
returns boolean
language plpgsql
as $$
-- routine   internal_enter_group
-- purpose   Take a token of a group: true with one, false where the message has to wait behind others. p_group_limit: the limit, if the caller has read it.
-- promise   P21 P22 P24
-- locks     a new message_group row, or the group's, shared; waits for who opens or closes it
declare
    v_limit    integer := p_group_limit;
    v_newest   integer;
    v_token_no smallint;
    v_tokens   integer;
begin
    if v_limit is null then
        select q.group_limit into v_limit
        from rowq.queue q
        where q.part_id = p_part_id;
    end if;

    loop
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
        on conflict (part_id, group_key, token_no) do nothing
        returning token_no into v_token_no;
        -- Any limit leaves room for one.
        exit when v_token_no is not null and v_limit = 1;

        if v_token_no is null then
            -- Hold the tokens to the end of the transaction: whoever would give the last one back
            -- knows by this that a message is coming.
            select count(*) into v_tokens
            from (
                select
                from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = p_group_key
                for key share
            ) h;
        end if;

        -- Each of these may have waited, and an alter_queue that has come meanwhile does not see
        -- this message. So what counts is the limit that is read after them.
        select q.group_limit into v_newest
        from rowq.queue q
        where q.part_id = p_part_id;
        if v_token_no is null then
            exit when v_tokens >= v_newest;
            -- The limit was raised, or a token was given back in between: try once more.
        else
            exit when v_newest >= v_limit;
            -- The limit was lowered: give the token back and try with that.
            delete from rowq.message_group x
            where x.part_id = p_part_id
              and x.group_key = p_group_key
              and x.token_no = v_token_no;
        end if;
        v_limit := v_newest;
    end loop;
    return v_token_no is not null;
end;
$$;
