create or replace function rowq.internal_check_range(
    p_name  text,
    p_value double precision,
    p_low   double precision,
    p_high  double precision
)
returns void
language plpgsql
as $$
-- routine   internal_check_range
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- errors    RQ711
begin
    if not p_value between p_low and p_high then
        raise exception 'RQ711 invalid_argument: % must be between % and %, got %',
            p_name, p_low, p_high, p_value
            using errcode = 'RQ711';
    end if;
end;
$$;
