create or replace function rowq.internal_widen_group(p_part_id integer, p_group_key text)
returns boolean
language plpgsql
as $$
-- routine   internal_widen_group
-- purpose   Give a group whose limit was raised its new tokens; return false where another look is needed.
-- promise   P22 P24
-- locks     as internal_try_enter_group and internal_leave_groups
declare
    v_has_token boolean;
begin
    while exists (
        select
        from rowq.grouped x
        where x.part_id = p_part_id
          and x.group_key = p_group_key
    ) loop
        v_has_token := rowq.internal_try_enter_group(p_part_id, p_group_key);
        exit when not v_has_token;
        if v_has_token is null then
            return false;
        end if;
        perform rowq.internal_leave_groups(p_part_id, array[p_group_key]);
    end loop;
    return true;
end;
$$;
