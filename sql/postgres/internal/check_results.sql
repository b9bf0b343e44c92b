create or replace function rowq.internal_check_results(
    p_results        jsonb,
    p_count          integer,
    p_result_seconds double precision
)
returns void
language plpgsql
as $$
-- routine   internal_check_results
-- purpose   Refuse results that are not p_count good ones, or that the queue does not keep.
-- promise   P15
-- errors    RQ711
declare
    c_longest constant integer := 1048576;
    v_fault text;
begin
    v_fault := case
        when p_result_seconds = 0
            then 'the queue keeps no results: its result_seconds is 0'
        else coalesce(
            rowq.internal_json_fault('results', p_results, 'array', 'strict $[*].**{20}', null),
            case
                when jsonb_array_length(p_results) <> p_count
                    then format(
                        'results are %s, and message_ids are %s', jsonb_array_length(p_results),
                        p_count
                    )
            end,
            (
                select format('a result is longer than %s characters', c_longest)
                from jsonb_array_elements(p_results) e (result)
                where char_length(e.result::text) > c_longest
                limit 1
            )
        )
    end;
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;
end;
$$;
