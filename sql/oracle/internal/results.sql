-- Results: how messages ended, and waiting for that.
--
-- If a queue has result_seconds, the call that ends a message adds a row to result in the same
-- transaction: completed with its result, dead with its last error, cancelled or expired. reset
-- deletes it. get_result reads it by key; wait_for_result polls it in short transactions of a few
-- reads by key. maintain purges in the order of finished_at, from a floor. Without result_seconds
-- complete runs no statement for results.
--
-- The two helpers without the prefix internal_ are public, so that package rowq_wait can call them.
--
--   complete_claim, fail_with, finish, ... -> push_result
--   complete_claim -> read_results, results_of
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
-- purpose   Record how messages ended, if the queue keeps results.
-- locks     result rows
--
-- p_results has a value or null for each position in p_messages, or is empty.
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_error clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
begin
    if p_error is not null and v_error is null then
        v_error := empty_clob();
    end if;
    if p_results.count > 0 then
        -- A completed message has no row yet, and merge cannot take LOBs of many rows.
        forall i in 1 .. p_messages.count
            insert into rowq_result (queue_id, message_id, finished_at, state, result)
            values (p_queue_id, p_messages(i).message_id, v_now, p_state, p_results(i));
        return;
    end if;

    -- A dead message that is cancelled or purged already has a row and keeps its error.
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
-- purpose   Return results by position without nulls; refuse invalid or unkept ones.
-- errors    RQ711
-- differs   other engines: check_results, where SQL finds a result in the array; here it would
--           round numbers
    c_longest constant pls_integer := 1048576;
    v_cuts    t_numbers;
    v_error   varchar2(32767);
    v_from    number;
    v_to      number;
    v_count   pls_integer := 0;
    v_firsts  t_numbers;
    v_lengths t_numbers;

    -- JSON is ASCII between its values, so a position is never inside an emoji.
    function is_blank(p_position in number)
    return boolean
    is
    begin
        return ascii(dbms_lob.substr(p_results, 1, p_position)) in (9, 10, 13, 32);
    end is_blank;
begin
    p_values.delete;
    if p_queue.result_seconds = 0 then
        internal_refuse('the queue does not keep results: result_seconds is 0');
    end if;
    internal_json_error('results', p_results, 'array', 21, null, v_cuts, v_error);
    if v_error is not null then
        internal_refuse(v_error);
    end if;

    -- Find the positions of the values first, so that each is copied once and SQL functions make no
    -- LOBs. Only an empty array has nothing but blanks between two cuts.
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
            v_count := v_count + 1;
            v_firsts(v_count) := v_from;
            v_lengths(v_count) := v_to - v_from + 1;
        end if;
    end loop;
    if v_count <> p_count then
        internal_refuse(
            'results must have one value per message: got ' || internal_number_text(v_count)
            || ' results for ' || internal_number_text(p_count) || ' messages'
        );
    end if;

    for i in 1 .. v_count loop
        if ascii(dbms_lob.substr(p_results, 1, v_firsts(i))) = ascii('n') then  -- null
            continue;
        end if;
        p_values(i) := null;
        dbms_lob.createtemporary(p_values(i), true, dbms_lob.call);
        dbms_lob.copy(p_values(i), p_results, v_lengths(i), 1, v_firsts(i));
        -- A CLOB's length counts an emoji as two. Counting characters is slow, so do it only if
        -- needed.
        if v_lengths(i) > c_longest then
            if internal_text_length(p_values(i)) > c_longest then
                internal_refuse(
                    'a result must be at most ' || internal_number_text(c_longest) || ' characters'
                );
            end if;
        end if;
    end loop;
end internal_read_results;

function internal_results_of(p_messages in t_messages, p_ids in rowq_ids, p_input in t_clobs)
return t_clobs
is
-- purpose   Return the results of messages by position, null for a message without one.
--
-- p_input follows p_ids, or p_messages if p_ids is null. The first of duplicate ids counts.
    v_positions t_positions;
    v_position  pls_integer;
    v_results   t_clobs;
begin
    if p_ids is null or p_input.count = 0 then
        return p_input;
    end if;
    for i in reverse 1 .. p_ids.count loop
        v_positions(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. p_messages.count loop
        v_position := v_positions(internal_number_text(p_messages(i).message_id));
        v_results(i) := null;
        if p_input.exists(v_position) then
            v_results(i) := p_input(v_position);
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
-- purpose   Return the state of a message, and when it ended; nulls if it is unknown.
-- differs   PostgreSQL: part of get_result; callers read the result, as a LOB ends with its block
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
    v_state       varchar2(20 char);
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
            p_queue_id, p_message_id, v_group_key, v_due_at, v_state, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_ended_at, v_waits_for, v_leased_at
        );
    end if;

    p_state := null;
    p_finished_at := null;
    if v_state is not null and v_ended_at is null then
        p_state := v_state;
        return;
    end if;
    -- Read the result last: it was committed together with the end seen above.
    open results;
    fetch results into p_state, p_finished_at;
    close results;
    if p_state is null and v_state is not null then
        p_state := v_state;
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
-- purpose   Poll once for wait_for_result: return how a message ended, or its state.
-- commits   never; the caller commits at once
-- errors    RQ701 RQ711
-- differs   this engine only: public, so that package rowq_wait can call it
    v_queue t_queue;
begin
    if p_message_id is null then
        internal_refuse('message_id is required');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    p_queue_id := v_queue.queue_id;

    if p_is_first = 1 or p_is_last = 1 then
        internal_read_result(v_queue.queue_id, p_message_id, p_state, p_finished_at);
    else
        -- Polls between the first and the last read only the result, by its key.
        select max(r.state), max(r.finished_at) into p_state, p_finished_at
        from rowq_result r
        where r.queue_id = v_queue.queue_id
          and r.message_id = p_message_id;
    end if;
    if p_finished_at is null
       and p_is_last = 0
       and v_queue.result_seconds = 0
       and (p_is_first = 0 or p_state is not null) then
        internal_refuse('the queue does not keep results: result_seconds is 0');
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
-- purpose   Return the row of get_result as a JSON object; null without p_state.
-- differs   this engine only: public, so that the query of wait_for_result can call it
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
        -- An empty text is not null, so put "". Before 21c only an array or object can be parsed,
        -- and put takes '' as null.
        v_object.put('last_error', json_array_t.parse('[""]').get(0));
    else
        v_object.put('last_error', v_error);
    end if;
    -- Append the result as text: a JSON object would round its numbers.
    dbms_lob.append(v_text, coalesce(v_result, to_clob('null')));
    dbms_lob.append(v_text, ',');
    dbms_lob.append(v_text, substr(v_object.to_clob(), 2));
    return v_text;
end result_json;

function internal_purge_results(p_queue in t_queue, p_limit in number)
return number
is
-- purpose   Delete up to p_limit expired results; return how many.
-- locks     result rows, skipping locked ones
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
    -- The index gives the order: no statement sorts, and a row is locked when it is fetched.
    cursor due_rows is
        select /*+ index_rs_asc(r rowq_result_finished_ix) no_batch_table_access_by_rowid(r) */
               r.rowid
        from rowq_result r
        where r.queue_id = p_queue.queue_id
          and r.finished_at >= v_since
          and r.finished_at < v_before
        for update skip locked;
begin
    -- Read without a lock first, so that an empty call begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_row_ids limit p_limit;
    close due_rows;
    -- Repeat the cursor's condition: the row may have changed since the cursor was opened.
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
