create or replace function rowq.internal_newest_number(p_lane smallint)
returns bigint
language plpgsql
as $$
-- routine   internal_newest_number
-- purpose   Return the newest number given out so far for rows of this kind of lane.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
begin
    return coalesce(
        case
            when p_lane >= 0 then pg_sequence_last_value('rowq.message_seq')
            when p_lane in (-1 /* claim */, -3 /* finished */)
                then pg_sequence_last_value('rowq.claim_seq')
            -- The clock stands for the number here: a writer reads the clock after it has its
            -- transaction id, and its row has no earlier moment.
            else extract(epoch from clock_timestamp()) * 1000000
        end,
        0
    );
end;
$$;
