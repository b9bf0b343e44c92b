procedure internal_check_range(
    p_name  in varchar2,
    p_value in number,
    p_low   in number,
    p_high  in number
)
is
-- routine   internal_check_range
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- errors    RQ711
begin
    if p_value not between p_low and p_high then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_range;
