create or replace function rowq.internal_try_enter_group(p_part_id integer, p_group_key text)
returns boolean
language plpgsql
set lock_timeout = '20ms'
as $$
-- routine   internal_try_enter_group
-- purpose   Do what internal_enter_group does, but return null where that takes longer than a moment.
-- promise   P22
-- locks     as internal_enter_group, waited for 20 ms, so that a deadlock never ends a producer
declare
    v_started constant timestamp with time zone := clock_timestamp();
begin
    return rowq.internal_enter_group(p_part_id, p_group_key);
exception
    when lock_not_available or serialization_failure then
        return null;
    -- The wait for a row is two waits, and a time-out at the very end of the first one shows in the
    -- second as a cancel by the user. Any other cancel, or a statement_timeout, ends the call: only
    -- one that comes within this moment is lost.
    when query_canceled then
        if clock_timestamp() - v_started
           not between interval '20 milliseconds' and interval '30 milliseconds' then
            raise;
        end if;
        return null;
end;
$$;
