create or replace function rowq.internal_is_listened(p_part_id integer)
returns boolean
language sql
as $$
-- routine   internal_is_listened
-- purpose   Return whether a session that listens for this queue's new messages can be notified.
-- locks     none that lasts, and none that is waited for
-- differs   this engine's own
    -- A session that listens holds this lock shared. One expression tries the lock and gives it
    -- back, so that nothing can come in between and leave it held. Two producers that try at the
    -- same moment take each other for a listener, which costs a needless notification. A
    -- transaction that has notified cannot be prepared, so the answer is always false where
    -- transactions may be prepared. Any session can fill the queue of notifications, and a notify
    -- into a full one fails. So none is sent from half of it on: workers poll.
    select case
        when pg_try_advisory_lock(1919907698, p_part_id)
            then not pg_advisory_unlock(1919907698, p_part_id)
        else current_setting('max_prepared_transactions') = '0'
            and pg_notification_queue_usage() < 0.5
    end;
$$;
