procedure internal_back_off(
    p_queue         in t_queue,
    p_messages      in t_messages,
    p_delay_seconds in number,
    p_due_at        out nocopy t_moments
)
is
-- routine   internal_back_off
-- purpose   Compute when failed messages are due again, one moment for each.
-- promise   P10
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_delay number;
begin
    for i in 1 .. p_messages.count loop
        v_delay := coalesce(
            p_delay_seconds,
            least(
                p_queue.backoff_cap_seconds,
                p_queue.backoff_base_seconds
                * power(p_queue.backoff_factor, least(p_messages(i).attempt - 1, 60))
            ) * (1 - p_queue.backoff_jitter * internal_random_fraction)
        );
        p_due_at(i) := v_now + numtodsinterval(v_delay, 'second');
    end loop;
end internal_back_off;
