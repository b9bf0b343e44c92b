create or replace function rowq.internal_body_fault(
    p_body        text,
    p_body_binary bytea,
    p_max_length  integer
)
returns text
language plpgsql
as $$
-- routine   internal_body_fault
-- purpose   Return what is wrong with the length of a body; null means nothing.
-- promise   P15
declare
    v_length constant integer := greatest(char_length(p_body), octet_length(p_body_binary));
begin
    if v_length > p_max_length then
        return format(
            'body is %s long, and the queue takes %s: max_body_length', v_length, p_max_length
        );
    end if;
    return null;
end;
$$;
