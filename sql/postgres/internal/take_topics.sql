create or replace function rowq.internal_take_topics(
    inout p_messages jsonb,
    out o_topics     text[]
)
language plpgsql
as $$
-- routine   internal_take_topics
-- purpose   Take the topics out of the messages of publish_batch, which get them as their types where they have none.
-- promise   P15
-- errors    RQ711
declare
    v_place integer;
    v_fault text;
begin
    -- What is no array of objects is left as it is, for internal_parse_messages to refuse.
    if jsonb_typeof(p_messages) is distinct from 'array' or exists (
        select 1
        from jsonb_array_elements(p_messages) e (message)
        where jsonb_typeof(e.message) <> 'object'
    ) then
        return;
    end if;

    select f.place, f.fault into v_place, v_fault
    from (
        select e.place,
               case
                   when e.message ?| array[
                           'predecessor_ids', 'predecessor_positions', 'on_predecessor_dead'
                       ]
                       then 'a published message has no predecessors'
                   when jsonb_typeof(e.message -> 'topic') not in ('string', 'null')
                       then 'topic must be a string'
                   else rowq.internal_topic_fault('topic', e.message ->> 'topic', false)
               end as fault
        from jsonb_array_elements(p_messages) with ordinality e (message, place)
    ) f
    where f.fault is not null
    order by f.place
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: % (message %)', v_fault, v_place
            using errcode = 'RQ711';
    end if;

    select coalesce(
               jsonb_agg(
                   case
                       when e.message ->> 'message_type' is null
                           then e.message - 'topic'
                               || jsonb_build_object('message_type', e.message -> 'topic')
                       else e.message - 'topic'
                   end
                   order by e.place
               ),
               '[]'
           ),
           array_agg(e.message ->> 'topic' order by e.place)
    into p_messages, o_topics
    from jsonb_array_elements(p_messages) with ordinality e (message, place);
end;
$$;
