create or replace function rowq.internal_parse_cron_field(
    p_field text,
    p_name  text,
    p_low   integer,
    p_high  integer,
    p_words text default null
)
returns text
language plpgsql
immutable
as $$
-- routine   internal_parse_cron_field
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from p_low on. p_words are names of three letters for these values.
-- promise   P15
-- errors    RQ711
declare
    v_item  text;
    v_parts text[];
    v_ends  integer[];
    v_step  integer;
    v_bits  text := repeat('0', p_high - p_low + 1);
begin
    foreach v_item in array string_to_array(lower(p_field collate "C"), ',') loop
        v_parts := regexp_match(
            v_item, '^(?:(\*)|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?$'
        );
        if v_parts[1] is not null then
            v_ends := array[p_low, p_high];
        else
            select array_agg(
                       case
                           when e.word is null and v_parts[4] is null then null
                           when e.word is null then p_high
                           when e.word ~ '^[0-9]' then e.word::integer
                           when strpos(p_words, e.word) % 4 = 1
                               then p_low + strpos(p_words, e.word) / 4
                           else -1
                       end
                       order by e.place
                   )
            into v_ends
            from unnest(v_parts[2:3]) with ordinality e (word, place);
            v_ends[2] := coalesce(v_ends[2], v_ends[1]);
        end if;
        v_step := coalesce(v_parts[4], '1')::integer;
        if v_parts is null
           or v_ends[1] < p_low
           or v_ends[2] > p_high
           or v_ends[1] > v_ends[2]
           or v_step = 0 then
            raise exception 'RQ711 invalid_argument: the % of cron must be *, values from % to %, '
                'ranges or steps of these, got %', p_name, p_low, p_high, left(p_field, 60)
                using errcode = 'RQ711';
        end if;
        for v_value in v_ends[1] - p_low .. v_ends[2] - p_low by v_step loop
            v_bits := overlay(v_bits placing '1' from v_value + 1);
        end loop;
    end loop;
    return v_bits;
end;
$$;
