procedure internal_check_name(p_name in varchar2, p_value in varchar2)
is
-- routine   internal_check_name
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- promise   P15
-- errors    RQ711
begin
    if p_value is null or length(p_value) > 100 or regexp_like(p_value, '[[:cntrl:]]') then
        internal_refuse(p_name || ' must be 1 to 100 characters, none of them control');
    end if;
end internal_check_name;
