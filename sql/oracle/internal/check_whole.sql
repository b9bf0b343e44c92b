procedure internal_check_whole(
    p_name        in varchar2,
    p_value       in number,
    p_low         in number,
    p_high        in number,
    p_is_required in boolean default false
)
is
-- routine   internal_check_whole
-- purpose   Refuse a number outside its range, or with a fraction, or missing where it is required.
-- promise   P15
-- errors    RQ711
-- differs   elsewhere the type of a parameter keeps fractions out
begin
    if p_value is null and p_is_required then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got null'
        );
    end if;
    internal_check_range(p_name, p_value, p_low, p_high);
    if p_value <> trunc(p_value) then
        internal_refuse(
            p_name || ' must be a whole number, got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_whole;
