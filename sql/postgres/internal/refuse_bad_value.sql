create or replace function rowq.internal_refuse_bad_value(p_message jsonb, p_position integer)
returns void
language plpgsql
as $$
-- routine   internal_refuse_bad_value
-- purpose   Refuse a message of enqueue_batch with a value that cannot be read, by key and position.
-- promise   P15
-- errors    RQ711
declare
    v_key text;
begin
    foreach v_key in array array[
        'priority', 'max_attempts', 'delay_seconds', 'run_at', 'body_base64', 'predecessor_ids',
        'predecessor_positions'
    ] loop
        begin
            case v_key
                when 'delay_seconds' then
                    perform (p_message ->> v_key)::double precision;
                when 'run_at' then
                    perform rowq.internal_parse_moment(p_message ->> v_key);
                when 'body_base64' then
                    perform decode(p_message ->> v_key, 'base64');
                when 'predecessor_ids', 'predecessor_positions' then
                    perform max(e.id::bigint)
                    from jsonb_array_elements_text(nullif(p_message -> v_key, 'null')) e (id);
                else
                    perform (p_message ->> v_key)::integer;
            end case;
        exception
            when data_exception then
                raise exception 'RQ711 invalid_argument: %: % (message %)',
                    v_key, sqlerrm, p_position
                    using errcode = 'RQ711';
        end;
    end loop;
end;
$$;
