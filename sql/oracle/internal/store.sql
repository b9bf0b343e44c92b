-- Store: new messages, dedup keys, and delayed messages that are due.
--
-- A message is one row of message and one row of the table where it waits: ready, delayed,
-- group_waiting or blocked. A batch takes a few statements, not a few per message. An unfinished
-- message with a dedup key has a row in dedup. A producer of the same key waits for that row and
-- gets the first message's id back as a duplicate. promote moves due messages from delayed to
-- ready, or into their groups.
--
--   enqueue, publish, check_schedule -> message_error
--   enqueue, publish, enqueue_tick -> new_message
--   enqueue_batch, publish_batch -> parse_messages -> parse_message
--   parse_message -> message_error, new_message
--   enqueue, enqueue_batch, store_bound, ... -> store -> reserve_dedup_keys, store_group_waiting
--   reserve_dedup_keys -> dedup_order
--   join_groups, pop_dead -> dedup_order
--   retry_later, release -> push_delayed -> push_ready
--   release, reset, pass_group_slot, ... -> push_ready
--   dequeue, maintain_queue -> promote -> promote_group_waiting, push_ready
--   promote_group_waiting -> postpone
--
-- Writes dedup, delayed, expiry, group_waiting, message, ready.

function internal_message_error(
    p_body                in clob,
    p_body_binary         in blob,
    p_message_type        in varchar2,
    p_headers             in clob,
    p_priority            in number,
    p_delay_seconds       in number,
    p_run_at              in timestamp,
    p_dedup_key           in varchar2,
    p_max_attempts        in number,
    p_group_key           in varchar2,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number,
    p_producer_name       in varchar2
)
return varchar2
is
-- purpose   Return the first error in the arguments of enqueue, or null.
    v_cuts  t_numbers;
    v_error varchar2(32767);
begin
    v_error := case
        when p_priority is null
             or p_priority not between 0 and 9
             or p_priority <> trunc(p_priority)
            then 'priority must be between 0 and 9, got ' || internal_number_text(p_priority)
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary are mutually exclusive'
        when length(p_message_type) > 200
            then 'message_type must be at most 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at are mutually exclusive'
        when p_delay_seconds not between 0 and 315360000
            then 'delay_seconds must be between 0 and 315360000, got '
                || internal_number_text(p_delay_seconds)
        when p_run_at > sys_extract_utc(systimestamp) + numtodsinterval(3650, 'day')
            then 'run_at must be within the next 10 years'
        when length(p_dedup_key) > 200
            then 'dedup_key must be 1 to 200 characters'
        -- Compare bytes: NLS_COMP and NLS_SORT change how texts compare.
        when utl_raw.cast_to_raw(substr(p_dedup_key, 1, 9)) = utl_raw.cast_to_raw('schedule:')
            then 'dedup_key must not begin with schedule:, which is reserved'
        when length(p_group_key) > 200
            then 'group_key must be 1 to 200 characters'
        when p_max_attempts not between 0 and 10000 or p_max_attempts <> trunc(p_max_attempts)
            then 'max_attempts must be between 0 and 10000, got '
                || internal_number_text(p_max_attempts)
        when utl_raw.cast_to_raw(p_on_predecessor_dead) not in (
            utl_raw.cast_to_raw('hold'), utl_raw.cast_to_raw('continue'),
            utl_raw.cast_to_raw('fail')
        )
            then 'on_predecessor_dead must be hold, continue or fail, got '
                || substr(p_on_predecessor_dead, 1, 100)
        when p_expire_seconds not between 0.001 and 315360000
            then 'expire_seconds must be between 0.001 and 315360000, got '
                || internal_number_text(p_expire_seconds)
        when length(p_producer_name) > 200
            then 'producer_name must be at most 200 characters'
    end;
    if p_headers is not null and v_error is null then
        internal_json_error('headers', p_headers, 'object', 20, 65536, v_cuts, v_error);
    end if;
    return v_error;
end internal_message_error;

function internal_new_message(
    p_now                 in timestamp,
    p_position            in number,
    p_body                in clob,
    p_body_binary         in blob,
    p_message_type        in varchar2,
    p_headers             in clob,
    p_priority            in number,
    p_delay_seconds       in number,
    p_run_at              in timestamp,
    p_dedup_key           in varchar2,
    p_max_attempts        in number,
    p_group_key           in varchar2,
    p_predecessor_ids     in rowq_ids,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number,
    p_producer_name       in varchar2
)
return t_new_message
is
-- purpose   Return a new message, from checked arguments.
    v_new t_new_message;
begin
    v_new.body := p_body;
    v_new.body_binary := p_body_binary;
    v_new.message_type := p_message_type;
    v_new.headers := p_headers;
    v_new.lane := p_priority * 2 + 1;
    v_new.seq := internal_microseconds(p_now) + p_position;
    v_new.enqueued_at := p_now + numtodsinterval(p_position / 1000000, 'second');
    v_new.due_at := coalesce(p_run_at, p_now + numtodsinterval(p_delay_seconds, 'second'));
    if v_new.due_at <= p_now then
        v_new.due_at := null;
    end if;
    v_new.expires_at := v_new.enqueued_at + numtodsinterval(p_expire_seconds, 'second');
    v_new.dedup_key := p_dedup_key;
    v_new.max_attempts := p_max_attempts;
    v_new.group_key := p_group_key;
    v_new.place := p_position;
    v_new.predecessor_ids := p_predecessor_ids;
    v_new.on_predecessor_dead := p_on_predecessor_dead;
    v_new.producer_name := p_producer_name;
    return v_new;
end internal_new_message;

function internal_parse_messages(
    p_messages     in clob,
    p_max_length   in number,
    p_is_published in boolean default false
)
return t_new_messages
is
-- purpose   Parse and check a batch of enqueue_batch or, with p_max_length null, of publish_batch.
-- errors    RQ711
    c_error constant varchar2(100 char) :=
        'messages must be a JSON array of at most 10000 objects';
    v_now     constant timestamp(6) := sys_extract_utc(systimestamp);
    v_rest    clob := p_messages;
    v_headers t_clobs;
    v_list    json_element_t;
    v_array   json_array_t;
    v_new     t_new_messages;
    v_error   varchar2(32767);
begin
    if not internal_is_json(p_messages) then
        internal_refuse(c_error);
    end if;
    -- A JSON object would round a number with many digits or an exponent, so cut the headers out as
    -- text. That scans each character, so do it only if needed. The pattern lists the digits
    -- because a range depends on NLS_SORT, as instr does.
    if dbms_lob.instr(p_messages, '"headers"') > 0
       and regexp_like(p_messages, '[[:space:],:[]-?[0123456789.]+[eE]|[0123456789.]{38}')
    then
        internal_cut_headers(p_messages, v_headers, v_rest);
    end if;
    v_list := json_element_t.parse(v_rest);
    if not v_list.is_array() then
        internal_refuse(c_error);
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        internal_refuse(c_error);
    end if;

    for i in 1 .. v_array.get_size() loop
        v_new(i) := internal_parse_message(
            v_array.get(i - 1), case when v_headers.exists(i) then v_headers(i) end, v_now, i,
            p_max_length, p_is_published, v_error
        );
        if v_error is not null then
            internal_refuse(v_error || ' (message ' || internal_number_text(i) || ')');
        end if;
    end loop;
    return v_new;
end internal_parse_messages;

function internal_parse_message(
    p_message      in json_element_t,
    p_headers      in clob,
    p_now          in timestamp,
    p_position     in number,
    p_max_length   in number,
    p_is_published in boolean,
    p_error        out varchar2
)
return t_new_message
is
-- purpose   Parse and check one message of enqueue_batch or, with a topic, of publish_batch.
    c_keys constant varchar2(300 char) := '|body|body_base64|message_type|headers|priority'
        || '|delay_seconds|run_at|dedup_key|max_attempts|group_key|expire_seconds|producer_name|'
        || case
            when p_is_published then 'topic|'
            else 'predecessor_ids|predecessor_positions|on_predecessor_dead|'
        end;
    c_meaning constant varchar2(100 char) :=
        ' must be a list of earlier positions in the batch';
    v_object    json_object_t;
    v_keys      json_key_list;
    v_new       t_new_message;
    v_known     pls_integer := 0;
    v_body      clob;
    v_headers   clob;
    v_bytes     blob;
    v_type      varchar2(32767);
    v_topic     varchar2(32767);
    v_key       varchar2(32767);
    v_group     varchar2(32767);
    v_on_dead   varchar2(32767);
    v_producer  varchar2(32767);
    v_ids       rowq_ids;
    v_positions rowq_ids;
    v_time      varchar2(32767);
    v_numbers   t_numbers;
    v_run_at    timestamp(6);

    -- Return whether a key is present and not null. Count every present key as known.
    function has(p_key in varchar2)
    return boolean
    is
    begin
        if not v_object.has(p_key) then
            return false;
        end if;
        v_known := v_known + 1;
        return not v_object.get(p_key).is_null();
    end has;

    function read_text(p_key in varchar2)
    return varchar2
    is
    begin
        if not has(p_key) then
            return null;
        end if;
        if not v_object.get(p_key).is_string() then
            p_error := p_key || ' must be a JSON string';
            return null;
        end if;
        -- No valid text is longer than 200 characters, so 201 are enough to refuse it.
        return substr(internal_clob_part(v_object.get_clob(p_key), 1, 402), 1, 201);
    end read_text;

    function read_list(p_key in varchar2, p_meaning in varchar2)
    return rowq_ids
    is
        v_list    rowq_ids;
        v_is_good boolean;
    begin
        if not has(p_key) then
            return null;
        end if;
        v_is_good := internal_is_id_list(v_object.get(p_key).to_clob(), v_list);
        if not v_is_good then
            p_error := p_key || p_meaning;
        end if;
        return v_list;
    end read_list;

    -- Refuse an empty text, which is null to Oracle.
    function read_key(p_key in varchar2)
    return varchar2
    is
        v_text varchar2(32767) := read_text(p_key);
    begin
        if v_text is null and v_object.has(p_key) then
            if v_object.get(p_key).is_string() then
                p_error := p_key || ' must be 1 to 200 characters';
            end if;
        end if;
        return v_text;
    end read_key;

    function read_number(p_key in varchar2, p_default in number default null)
    return number
    is
        v_number number;
    begin
        if not has(p_key) then
            return p_default;
        end if;
        if not v_object.get(p_key).is_number() then
            p_error := p_key || ' must be a JSON number';
            return null;
        end if;
        v_number := v_object.get_number(p_key);
        if v_number is null then
            -- The number exceeds the range of NUMBER.
            p_error := p_key || ' is out of range';
        end if;
        return v_number;
    end read_number;
begin
    p_error := null;
    if not p_message.is_object() then
        p_error := 'a message must be a JSON object';
        return v_new;
    end if;
    v_object := treat(p_message as json_object_t);

    if has('body') then
        -- Store a value that is not a string as JSON text. Store an empty CLOB for an empty text,
        -- because '' is null to Oracle.
        v_body := case
            when v_object.get('body').is_string() then v_object.get_clob('body')
            else v_object.get('body').to_clob()
        end;
        v_body := coalesce(v_body, empty_clob());
    end if;
    if has('body_base64') then
        if v_object.get('body_base64').is_string() then
            v_bytes := internal_from_base64(v_object.get_clob('body_base64'));
        end if;
        if v_bytes is null then
            p_error := 'body_base64 must be valid base64';
        end if;
    end if;
    if has('headers') then
        -- p_headers is set if internal_cut_headers has cut them out of the message.
        v_headers := coalesce(p_headers, v_object.get('headers').to_clob());
    end if;
    v_type := read_text('message_type');
    v_producer := read_text('producer_name');
    v_key := read_key('dedup_key');
    v_group := read_key('group_key');
    if p_is_published then
        v_topic := read_text('topic');
        p_error := coalesce(p_error, internal_topic_error('topic', v_topic, false));
        v_type := coalesce(v_type, v_topic);
    else
        v_ids := read_list(
            'predecessor_ids', ' must be a list of at most 10000 ids without nulls'
        );
        v_positions := read_list('predecessor_positions', c_meaning);
        v_on_dead := read_text('on_predecessor_dead');
        if v_on_dead is null and v_object.has('on_predecessor_dead') then
            if v_object.get('on_predecessor_dead').is_string() then
                p_error := 'on_predecessor_dead must be hold, continue or fail';
            end if;
        end if;
    end if;
    v_time := read_text('run_at');
    v_run_at := internal_parse_timestamp(v_time);
    if v_time is not null and v_run_at is null then
        p_error := 'run_at must be an ISO 8601 timestamp, got ' || substr(v_time, 1, 40);
    end if;
    v_numbers(1) := read_number('priority', 5);
    v_numbers(2) := read_number('delay_seconds');
    v_numbers(3) := read_number('max_attempts');
    v_numbers(4) := read_number('expire_seconds');

    if v_known < v_object.get_size() then
        p_error := 'unknown key';
        begin
            v_keys := v_object.get_keys();
            for i in 1 .. v_keys.count loop
                if instr(c_keys, '|' || v_keys(i) || '|') = 0 then
                    p_error := 'unknown key ' || substr(v_keys(i), 1, 60);
                end if;
            end loop;
        exception
            when value_error then
                -- ORA-06502: json_key_list cannot hold a key of more than 4000 bytes.
                p_error := 'unknown key of more than 4000 bytes';
        end;
    end if;
    if v_positions is not null and p_error is null then
        for i in 1 .. v_positions.count loop
            if v_positions(i) not between 1 and p_position - 1 then
                p_error := 'predecessor_positions' || c_meaning;
            end if;
        end loop;
        if v_ids is null then
            v_ids := rowq_ids();
        end if;
    end if;
    p_error := coalesce(
        p_error,
        internal_message_error(
            v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2), v_run_at, v_key,
            v_numbers(3), v_group, v_on_dead, v_numbers(4), v_producer
        ),
        internal_body_error(v_body, v_bytes, p_max_length)
    );
    if p_error is null then
        v_new := internal_new_message(
            p_now, p_position, v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2),
            v_run_at, v_key, v_numbers(3), v_group, v_ids, v_on_dead, v_numbers(4), v_producer
        );
        v_new.predecessor_positions := v_positions;
        v_new.topic := v_topic;
    end if;
    return v_new;
end internal_parse_message;

procedure internal_store(
    p_queue_id   in number,
    p_queue_name in varchar2,
    p_new        in out nocopy t_new_messages
)
is
-- purpose   Store checked messages in the tables where they wait.
-- locks     new rows; as internal_reserve_dedup_keys, internal_join_groups and internal_block_batch
-- errors    RQ701 RQ711
    -- ORA-02291 (parent key not found): the queue was dropped while this insert waited for it.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    v_fresh      t_numbers;
    v_ready      t_numbers;
    v_later      t_numbers;
    v_expiring   t_numbers;
    v_is_waiting boolean := false;
begin
    internal_reserve_dedup_keys(p_queue_id, p_new);
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' then
            v_fresh(i) := i;
            v_is_waiting := v_is_waiting or p_new(i).predecessor_ids is not null;
            if p_new(i).expires_at is not null then
                v_expiring(i) := i;
            end if;
            if p_new(i).due_at is null then
                v_ready(i) := i;
            else
                v_later(i) := i;
            end if;
        end if;
    end loop;
    internal_open_lanes_for(p_queue_id, p_new);

    forall i in indices of v_fresh
        insert into rowq_message (
            queue_id, message_id, max_attempts, lane, seq, enqueued_at, due_at, message_type,
            dedup_key, group_key, expires_at, producer_name, headers, body, body_binary
        )
        values (
            p_queue_id, p_new(i).message_id, p_new(i).max_attempts, p_new(i).lane, p_new(i).seq,
            p_new(i).enqueued_at, p_new(i).due_at, p_new(i).message_type,
            p_new(i).dedup_key, p_new(i).group_key, p_new(i).expires_at,
            p_new(i).producer_name, p_new(i).headers, p_new(i).body, p_new(i).body_binary
        );
    forall i in indices of v_expiring
        insert into rowq_expiry (queue_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_queue_id,
            least(p_new(i).expires_at, p_new(i).enqueued_at + numtodsinterval(1, 'day')),
            rowq_claim_seq.nextval, p_new(i).message_id, p_new(i).lane, p_new(i).seq
        );
    if v_is_waiting then
        internal_block_batch(p_queue_id, p_new, v_ready, v_later);
    end if;
    internal_store_group_waiting(p_queue_id, p_new, v_ready);
    forall i in indices of v_ready
        insert into rowq_ready (queue_id, lane, seq, message_id)
        values (p_queue_id, p_new(i).lane, p_new(i).seq, p_new(i).message_id);
    forall i in indices of v_later
        insert into rowq_delayed (queue_id, due_at, message_id, lane, group_key)
        values (
            p_queue_id, p_new(i).due_at, p_new(i).message_id, p_new(i).lane, p_new(i).group_key
        );
exception
    when e_no_queue then
        internal_refuse_queue(p_queue_name);
end internal_store;

procedure internal_reserve_dedup_keys(p_queue_id in number, p_new in out nocopy t_new_messages)
is
-- purpose   Assign ids and reserve dedup keys; a duplicate gets the id of its key's owner.
-- locks     new dedup rows; waits for open enqueues of the same keys, in key order; the bucket of a
--           schedule's key, without waiting
    c_most_tries constant pls_integer := 100;
    v_count      constant pls_integer := p_new.count;
    v_ids        t_numbers;
    v_order      t_positions;
    v_at         varchar2(4000 char);
    v_key        raw(800);
    v_has_bucket boolean;
    v_tries      pls_integer;
    v_other      rowq_dedup.message_id%type;
begin
    -- Take all ids in one statement, to switch from PL/SQL to SQL only once.
    select rowq_message_seq.nextval
    bulk collect into v_ids
    from dual
    connect by level <= v_count;

    for i in 1 .. v_count loop
        p_new(i).outcome := 'enqueued';
        p_new(i).message_id := v_ids(i);
        if p_new(i).dedup_key is not null then
            v_order(internal_dedup_order(p_new(i).dedup_key, i)) := i;
        end if;
    end loop;

    -- Reserve in key order, so that two batches with the same keys cannot deadlock.
    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(p_new(v_order(v_at)).dedup_key);
        if instr(p_new(v_order(v_at)).dedup_key, 'schedule:') = 1 then
            -- Continue without the bucket if it is locked: the insert may wait for the key.
            v_has_bucket := internal_lock_bucket(p_queue_id, v_key);
        end if;
        v_tries := 0;
        loop
            begin
                insert into rowq_dedup (queue_id, dedup_key, message_id)
                values (p_queue_id, v_key, p_new(v_order(v_at)).message_id);
                exit;
            exception
                when dup_val_on_index then
                    -- Another producer owns the key, or has committed it while this one waited.
                    select max(d.message_id) into v_other
                    from rowq_dedup d
                    where d.queue_id = p_queue_id
                      and d.dedup_key = v_key;
                    if v_other is not null then
                        p_new(v_order(v_at)).message_id := v_other;
                        p_new(v_order(v_at)).outcome := 'duplicate';
                        exit;
                    end if;
                    -- The key is free again: retry. Limit the tries, because a serializable
                    -- transaction never sees the row that it collides with.
                    v_tries := v_tries + 1;
                    if v_tries = c_most_tries then
                        raise;
                    end if;
            end;
        end loop;
        v_at := v_order.next(v_at);
    end loop;
end internal_reserve_dedup_keys;

function internal_dedup_order(p_dedup_key in varchar2, p_number in number)
return varchar2
is
-- purpose   Return a key's sort key, as an index of t_positions; p_number separates equal keys.
-- differs   only here a session chooses the order of texts
    v_hex varchar2(1600 char);
begin
    -- Use digits only: all sessions must reserve keys in the same order, and NLS_SORT changes the
    -- order of letters.
    v_hex := rawtohex(utl_raw.cast_to_raw(p_dedup_key));
    return translate(v_hex, 'ABCDEF', '999999')
        || translate(v_hex, '0123456789ABCDEF', '0000000000123456')
        || to_char(p_number, 'fm0000000000000000000');
end internal_dedup_order;

procedure internal_store_group_waiting(
    p_queue_id in number,
    p_new      in t_new_messages,
    p_ready    in out nocopy t_numbers
)
is
-- purpose   Let new messages join their groups, and remove those that wait from p_ready.
-- locks     as internal_join_groups
    v_messages t_messages;
    v_waiting  t_numbers;
    v_position pls_integer := p_ready.first;
begin
    while v_position is not null loop
        if p_new(v_position).group_key is not null then
            v_messages(v_position).message_id := p_new(v_position).message_id;
            v_messages(v_position).lane := p_new(v_position).lane;
            v_messages(v_position).group_key := p_new(v_position).group_key;
        end if;
        v_position := p_ready.next(v_position);
    end loop;
    internal_join_groups(p_queue_id, v_messages, v_waiting);

    v_position := v_waiting.first;
    while v_position is not null loop
        p_ready.delete(v_position);
        v_position := v_waiting.next(v_position);
    end loop;
end internal_store_group_waiting;

procedure internal_push_delayed(
    p_queue_id in number,
    p_messages in t_messages,
    p_due_at   in t_timestamps
)
is
-- purpose   Delay messages until they are due; make those that are already due ready.
-- locks     message rows, waiting for them; new delayed, ready and expiry rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_later      t_messages;
    v_timestamps t_timestamps;
    v_due        t_messages;
    v_message    t_message;
    v_seqs       t_numbers;
begin
    for i in 1 .. p_messages.count loop
        v_message := p_messages(i);
        v_message.lane := trunc(v_message.lane / 2) * 2 + 1;
        if p_due_at(i) > v_now then
            v_later(v_later.count + 1) := v_message;
            v_timestamps(v_later.count) := p_due_at(i);
        else
            v_due(v_due.count + 1) := v_message;
        end if;
    end loop;

    forall i in 1 .. v_later.count
        insert into rowq_delayed (queue_id, due_at, message_id, lane, attempt)
        values (
            p_queue_id, v_timestamps(i), v_later(i).message_id, v_later(i).lane, v_later(i).attempt
        );
    forall i in 1 .. v_later.count
        update rowq_message m
        set m.due_at = v_timestamps(i)
        where m.queue_id = p_queue_id
          and m.message_id = v_later(i).message_id;
    internal_record_expiry(p_queue_id, v_later, v_seqs);
    internal_push_ready(p_queue_id, v_due);
end internal_push_delayed;

procedure internal_push_ready(p_queue_id in number, p_messages in t_messages)
is
-- purpose   Append messages to their lanes, in their order.
-- locks     new ready and expiry rows
    v_seq       constant number := internal_microseconds(sys_extract_utc(systimestamp));
    v_positions t_numbers;
begin
    for i in 1 .. p_messages.count loop
        v_positions(i) := v_seq + i;
    end loop;
    forall i in 1 .. p_messages.count
        insert into rowq_ready (queue_id, lane, seq, message_id, attempt)
        values (
            p_queue_id, p_messages(i).lane, v_positions(i), p_messages(i).message_id,
            p_messages(i).attempt
        );
    internal_record_expiry(p_queue_id, p_messages, v_positions);
end internal_push_ready;

function internal_promote(p_queue_id in number, p_limit in number)
return number
is
-- purpose   Move up to p_limit due messages to their lanes or groups, earliest first.
-- locks     delayed rows, skipping locked ones; new ready rows; as internal_promote_group_waiting
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue_id, -2 /* delayed */));
    v_probe    rowq_delayed.message_id%type;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_joined   number;
    cursor due is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.queue_id = p_queue_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.queue_id, d.due_at, d.message_id;
    cursor due_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.queue_id = p_queue_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.queue_id, d.due_at, d.message_id
        for update skip locked;
begin
    -- Read without a lock first, so that a call that finds nothing opens no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_locked limit p_limit;
    close due_rows;
    internal_delete_delayed(v_locked, v_messages);
    internal_promote_group_waiting(p_queue_id, v_messages, v_joined);
    internal_push_ready(p_queue_id, v_messages);
    return v_messages.count + v_joined;
end internal_promote;

procedure internal_promote_group_waiting(
    p_queue_id in number,
    p_messages in out nocopy t_messages,
    p_joined   out number
)
is
-- purpose   Let due messages join their groups; leave in p_messages those to make ready.
-- locks     as internal_take_group_slot and internal_postpone; new group_waiting rows
--
-- p_joined counts the messages that wait in their groups. A message that would wait for a producer
-- is postponed by 0.5 seconds.
    v_key      raw(800);
    v_has_slot boolean;
    v_ready    t_messages;
    v_late     t_messages;
begin
    p_joined := 0;
    for i in 1 .. p_messages.count loop
        v_has_slot := true;
        if p_messages(i).group_key is not null then
            v_key := utl_raw.cast_to_raw(p_messages(i).group_key);
            v_has_slot := internal_take_group_slot(p_queue_id, v_key, false);
        end if;
        if v_has_slot is null then
            v_late(v_late.count + 1) := p_messages(i);
        elsif v_has_slot then
            v_ready(v_ready.count + 1) := p_messages(i);
        else
            insert into rowq_group_waiting (queue_id, group_key, message_id, lane)
            values (p_queue_id, v_key, p_messages(i).message_id, p_messages(i).lane);
            p_joined := p_joined + 1;
        end if;
    end loop;
    p_messages := v_ready;
    internal_postpone(p_queue_id, v_late);
end internal_promote_group_waiting;

procedure internal_postpone(p_queue_id in number, p_messages in t_messages)
is
-- purpose   Delay messages by another 0.5 seconds, except for those with locked rows.
-- locks     message rows, skipping locked ones; new delayed rows
    v_later   constant timestamp(6) :=
        sys_extract_utc(systimestamp) + numtodsinterval(0.5, 'second');
    v_wanted     rowq_ids := internal_ids_of(p_messages);
    v_locked     rowq_ids;
    v_held       rowq_ids;
    v_ids        t_numbers;
    v_due_ats    t_timestamps;
    v_own        t_positions;
    v_timestamps t_timestamps;
    v_text       varchar2(50 char);
begin
    if p_messages.count = 0 then
        return;
    end if;
    -- A producer that has named one of them as a predecessor holds its row: do not wait for it.
    internal_lock_messages(p_queue_id, v_wanted, v_locked, v_held);
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.due_at
    bulk collect into v_ids, v_due_ats
    from table(v_held) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value;
    for i in 1 .. v_ids.count loop
        v_own(internal_number_text(v_ids(i))) := i;
    end loop;
    for i in 1 .. p_messages.count loop
        v_text := internal_number_text(p_messages(i).message_id);
        v_timestamps(i) := case
            when v_own.exists(v_text) then v_due_ats(v_own(v_text))
            else v_later
        end;
    end loop;

    forall i in 1 .. p_messages.count
        insert into rowq_delayed (queue_id, due_at, message_id, lane, attempt, group_key)
        values (
            p_queue_id, v_timestamps(i), p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, p_messages(i).group_key
        );
    forall i in 1 .. v_locked.count
        update rowq_message m
        set m.due_at = v_later
        where m.queue_id = p_queue_id
          and m.message_id = v_locked(i);
end internal_postpone;
