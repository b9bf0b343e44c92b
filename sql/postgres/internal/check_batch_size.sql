create or replace function rowq.internal_check_batch_size(p_batch_size integer)
returns void
language plpgsql
as $$
-- routine   internal_check_batch_size
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000.
-- promise   P15
-- errors    RQ711
begin
    if p_batch_size is null or p_batch_size not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: batch_size must be between 1 and 10000, got %',
            p_batch_size
            using errcode = 'RQ711';
    end if;
end;
$$;
