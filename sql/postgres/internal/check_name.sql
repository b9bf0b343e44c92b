create or replace function rowq.internal_check_name(p_name text, p_value text)
returns void
language plpgsql
as $$
-- routine   internal_check_name
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- promise   P15
-- errors    RQ711
begin
    if p_value is null
       or char_length(p_value) not between 1 and 100
       or p_value ~ '[[:cntrl:]]' then
        raise exception
            'RQ711 invalid_argument: % must be 1 to 100 characters, none of them control', p_name
            using errcode = 'RQ711';
    end if;
end;
$$;
