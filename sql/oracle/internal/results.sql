-- Results: how messages ended, and waiting for that.
--
-- If a queue has result_seconds, the call that ends a message adds a row to result in the same
-- transaction: completed with its result, dead with its last error, cancelled or expired. reset
-- deletes it. get_result reads it by key. wait_for_result polls it in short transactions, each a
-- few reads by key, whatever the backlog. maintain purges in the order of finished_at, from a floor
-- on. Without result_seconds complete runs no statement for any of this.
--
-- The two helpers without the prefix internal_ are public, because package rowq_wait calls them by
-- text.
--
--   complete, fail_with, finish, ... -> push_result
--   complete -> read_results, results_of
--   get_result -> read_result
--   wait_for_result -> poll_result_once -> read_result
--   wait_for_result -> result_json
--   maintain_retention -> purge_results
--
-- Writes result. Only reads archive, message.

procedure internal_push_result(
    p_queue_id in number,
    p_messages in t_messages,
    p_state    in varchar2,
    p_error    in clob,
    p_results  in t_clobs
)
is
-- purpose   Keep how messages have ended; p_results has those of the messages, null for one without, by their places in p_messages; it is empty where no message has one.
-- locks     result rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_error clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
begin
    if p_error is not null and v_error is null then
        v_error := empty_clob();
    end if;
    if p_results.count > 0 then
        -- What was completed has no row yet. A merge is not for LOBs of many rows.
        forall i in 1 .. p_messages.count
            insert into rowq_result (queue_id, message_id, finished_at, state, result)
            values (p_queue_id, p_messages(i).message_id, v_now, p_state, p_results(i));
        return;
    end if;

    -- A dead message that is cancelled or purged has its row already, and keeps its error.
    forall i in 1 .. p_messages.count
        merge into rowq_result r
        using (
            select p_queue_id as queue_id, p_messages(i).message_id as message_id
            from dual
        ) n on (r.queue_id = n.queue_id and r.message_id = n.message_id)
        when matched then update
            set r.finished_at = v_now,
                r.state       = p_state
        when not matched then insert (
            queue_id, message_id, finished_at, state, last_error
        )
        values (n.queue_id, n.message_id, v_now, p_state, v_error);
end internal_push_result;

procedure internal_read_results(
    p_results in clob,
    p_count   in number,
    p_queue   in t_queue,
    p_values  out nocopy t_clobs
)
is
-- purpose   Return results by their places, without those that are null; refuse what are not p_count good ones, or what the queue does not keep.
-- errors    RQ711
-- differs   check_results elsewhere, where SQL finds a result in the array; here it would round
--           numbers
    c_longest constant pls_integer := 1048576;
    v_cuts    t_numbers;
    v_error   varchar2(32767);
    v_from    number;
    v_to      number;
    v_given   pls_integer := 0;
    v_firsts  t_numbers;
    v_lengths t_numbers;

    -- What JSON has around its values is ASCII, so a place is never in the middle of an emoji.
    function is_blank(p_place in number)
    return boolean
    is
    begin
        return ascii(dbms_lob.substr(p_results, 1, p_place)) in (9, 10, 13, 32);
    end is_blank;
begin
    p_values.delete;
    if p_queue.result_seconds = 0 then
        internal_refuse('the queue keeps no results: its result_seconds is 0');
    end if;
    internal_json_error('results', p_results, 'array', 21, null, v_cuts, v_error);
    if v_error is not null then
        internal_refuse(v_error);
    end if;

    -- Find the values by their places first, so that each is copied once and no function of SQL
    -- makes a LOB of its own. Only an array without any value has nothing but blanks between two
    -- cuts.
    for i in 1 .. v_cuts.count - 1 loop
        v_from := v_cuts(i) + 1;
        v_to := v_cuts(i + 1) - 1;
        while v_from <= v_to and is_blank(v_from) loop
            v_from := v_from + 1;
        end loop;
        while v_from <= v_to and is_blank(v_to) loop
            v_to := v_to - 1;
        end loop;
        if v_from <= v_to then
            v_given := v_given + 1;
            v_firsts(v_given) := v_from;
            v_lengths(v_given) := v_to - v_from + 1;
        end if;
    end loop;
    if v_given <> p_count then
        internal_refuse(
            'results are ' || internal_number_text(v_given) || ', and message_ids are '
            || internal_number_text(p_count)
        );
    end if;

    for i in 1 .. v_given loop
        -- A value that begins with an n is null.
        if ascii(dbms_lob.substr(p_results, 1, v_firsts(i))) = ascii('n') then
            continue;
        end if;
        p_values(i) := null;
        dbms_lob.createtemporary(p_values(i), true, dbms_lob.call);
        dbms_lob.copy(p_values(i), p_results, v_lengths(i), 1, v_firsts(i));
        -- A length in a CLOB counts an emoji as two. Counting it as one takes long, so do it only
        -- where the result seems too long.
        if v_lengths(i) > c_longest then
            if internal_text_length(p_values(i)) > c_longest then
                internal_refuse(
                    'a result is longer than ' || internal_number_text(c_longest) || ' characters'
                );
            end if;
        end if;
    end loop;
end internal_read_results;

function internal_results_of(p_messages in t_messages, p_ids in rowq_ids, p_given in t_clobs)
return t_clobs
is
-- purpose   Return the results of messages by their places, null for one without; none where nobody has one. p_given goes along p_ids, or, where these are null, along p_messages. Of a message named twice the first one counts.
-- differs   no such helper elsewhere: part of push_result
    v_places  t_positions;
    v_place   pls_integer;
    v_results t_clobs;
begin
    if p_ids is null or p_given.count = 0 then
        return p_given;
    end if;
    for i in reverse 1 .. p_ids.count loop
        v_places(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. p_messages.count loop
        v_place := v_places(internal_number_text(p_messages(i).message_id));
        v_results(i) := null;
        if p_given.exists(v_place) then
            v_results(i) := p_given(v_place);
        end if;
    end loop;
    return v_results;
end internal_results_of;

procedure internal_read_result(
    p_queue_id    in number,
    p_message_id  in number,
    p_state       out varchar2,
    p_finished_at out timestamp
)
is
-- purpose   Return how a message has ended; of one that has not ended its state; nulls when rowq does not know it.
-- differs   part of get_result on PostgreSQL; the result is read by who returns it, as a LOB of a
--           variable ends with its block
    v_is_known    pls_integer;
    v_group_key   rowq_message.group_key%type;
    v_due_at      timestamp(6);
    v_lane        number;
    v_attempt     number;
    v_claim_id    number;
    v_worker_name rowq_claim.worker_name%type;
    v_leased_at   timestamp(6);
    v_lease_until timestamp(6);
    v_waits_for   number;
    v_place       varchar2(20 char);
    v_ended_at    timestamp(6);
    cursor results is
        select r.state, r.finished_at
        from rowq_result r
        where r.queue_id = p_queue_id
          and r.message_id = p_message_id;
    cursor archived is
        select a.state, a.finished_at
        from rowq_archive a
        where a.queue_id = p_queue_id
          and a.message_id = p_message_id;
begin
    select count(*), max(m.due_at), max(m.group_key) into v_is_known, v_due_at, v_group_key
    from rowq_message m
    where m.queue_id = p_queue_id
      and m.message_id = p_message_id;
    if v_is_known = 1 then
        internal_locate_messages(
            p_queue_id, p_message_id, v_group_key, v_due_at, v_place, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_ended_at, v_waits_for, v_leased_at
        );
    end if;

    p_state := null;
    p_finished_at := null;
    if v_place is not null and v_ended_at is null then
        p_state := v_place;
        return;
    end if;
    -- Look for the result last, because it is committed together with the end that was seen.
    open results;
    fetch results into p_state, p_finished_at;
    close results;
    if p_state is null and v_place is not null then
        p_state := v_place;
        p_finished_at := v_ended_at;
    elsif p_state is null then
        open archived;
        fetch archived into p_state, p_finished_at;
        close archived;
    end if;
end internal_read_result;

procedure poll_result_once(
    p_queue_name  in varchar2,
    p_message_id  in number,
    p_is_first    in number,
    p_is_last     in number,
    p_queue_id    out number,
    p_state       out varchar2,
    p_finished_at out timestamp
)
is
-- purpose   One look of wait_for_result: how a message has ended; the first look and the last one say where it is, too.
-- commits   never; the caller commits at once
-- errors    RQ701 RQ711
-- differs   this engine's own: public, so that package rowq_wait can call it
    v_queue t_queue;
begin
    if p_message_id is null then
        internal_refuse('message_id is missing');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    p_queue_id := v_queue.queue_id;

    if p_is_first = 1 or p_is_last = 1 then
        internal_read_result(v_queue.queue_id, p_message_id, p_state, p_finished_at);
    else
        -- Looks between need no more than the result, which is found by its key.
        select max(r.state), max(r.finished_at) into p_state, p_finished_at
        from rowq_result r
        where r.queue_id = v_queue.queue_id
          and r.message_id = p_message_id;
    end if;
    if p_finished_at is null
       and p_is_last = 0
       and v_queue.result_seconds = 0
       and (p_is_first = 0 or p_state is not null) then
        internal_refuse('the queue keeps no results: its result_seconds is 0');
    end if;
end poll_result_once;

function result_json(
    p_queue_id    in number,
    p_message_id  in number,
    p_state       in varchar2,
    p_finished_at in timestamp
)
return clob
is
-- purpose   The row of get_result as JSON object, of a message that is in this state; null without one.
-- differs   this engine's own: public, so that the query of wait_for_result's result can call it
    v_object  json_object_t := json_object_t();
    v_result  clob;
    v_error   clob;
    v_is_kept pls_integer := 0;
    v_text    clob := '{"result":';
    cursor results is
        select 1 as is_kept, r.result, r.last_error
        from rowq_result r
        where r.queue_id = p_queue_id
          and r.message_id = p_message_id;
    cursor bodies is
        select m.last_error
        from rowq_message m
        where m.queue_id = p_queue_id
          and m.message_id = p_message_id;
begin
    if p_state is null then
        return null;
    end if;
    if p_finished_at is not null then
        open results;
        fetch results into v_is_kept, v_result, v_error;
        close results;
        if v_is_kept = 0 and p_state = 'dead' then
            open bodies;
            fetch bodies into v_error;
            close bodies;
        end if;
    end if;

    v_object.put('message_id', p_message_id);
    v_object.put('state', p_state);
    if p_finished_at is null then
        v_object.put_null('finished_at');
    else
        v_object.put('finished_at', internal_iso_text(p_finished_at));
    end if;
    if v_error is null then
        v_object.put_null('last_error');
    elsif dbms_lob.getlength(v_error) = 0 then
        -- An empty text is not a missing one, so it is put as "". Before 21c only an array or an
        -- object can be parsed, and put takes '' as null.
        v_object.put('last_error', json_array_t.parse('[""]').get(0));
    else
        v_object.put('last_error', v_error);
    end if;
    -- The result is added as text, because a JSON object would round its numbers.
    dbms_lob.append(v_text, coalesce(v_result, to_clob('null')));
    dbms_lob.append(v_text, ',');
    dbms_lob.append(v_text, substr(v_object.to_clob(), 2));
    return v_text;
end result_json;

function internal_purge_results(p_queue in t_queue, p_limit in number)
return number
is
-- purpose   Delete up to p_limit results of messages that ended too long ago; returns how many there were.
-- locks     result rows, passing over locked ones
    v_before  constant timestamp(6) :=
        sys_extract_utc(systimestamp) - numtodsinterval(p_queue.result_seconds, 'second');
    v_since   constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.queue_id, -7 /* result */));
    v_probe   rowq_result.finished_at%type;
    v_row_ids t_row_ids;
    v_purged  number := 0;
    cursor due is
        select /*+ index_rs_asc(r rowq_result_finished_ix) */ r.finished_at
        from rowq_result r
        where r.queue_id = p_queue.queue_id
          and r.finished_at >= v_since
          and r.finished_at < v_before
        order by r.queue_id, r.finished_at;
    -- The order of the index is enough: no statement sorts, and a row is locked when it is fetched.
    cursor due_rows is
        select /*+ index_rs_asc(r rowq_result_finished_ix) no_batch_table_access_by_rowid(r) */
               r.rowid
        from rowq_result r
        where r.queue_id = p_queue.queue_id
          and r.finished_at >= v_since
          and r.finished_at < v_before
        for update skip locked;
begin
    -- Look without a lock first, so that a call that finds nothing begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_row_ids limit p_limit;
    close due_rows;
    -- Ask again for what the cursor asked for, because a row may be another one by now, or a newer
    -- end of its message, where somebody has changed it since the cursor was opened.
    forall i in 1 .. v_row_ids.count
        delete from rowq_result r
        where r.rowid = v_row_ids(i)
          and r.queue_id = p_queue.queue_id
          and r.finished_at < v_before;
    for i in 1 .. v_row_ids.count loop
        v_purged := v_purged + sql%bulk_rowcount(i);
    end loop;
    return v_purged;
end internal_purge_results;
