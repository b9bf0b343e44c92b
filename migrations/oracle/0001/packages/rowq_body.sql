-- Put together from ../internal, ../helpers and ../routines by make generate.
create or replace package body rowq as

-- What subprograms of the package hand to each other. seq is a place: in its lane, or in its claim.
type t_queue is record (
    part_id              rowq_queue.part_id%type,
    lease_seconds        rowq_queue.lease_seconds%type,
    max_attempts         rowq_queue.max_attempts%type,
    backoff_base_seconds rowq_queue.backoff_base_seconds%type,
    backoff_factor       rowq_queue.backoff_factor%type,
    backoff_cap_seconds  rowq_queue.backoff_cap_seconds%type,
    backoff_jitter       rowq_queue.backoff_jitter%type,
    archive_days         rowq_queue.archive_days%type,
    max_body_length      rowq_queue.max_body_length%type,
    paused_at            rowq_queue.paused_at%type,
    listened_until       rowq_queue.listened_until%type
);
type t_message is record (
    message_id rowq_message.message_id%type,
    lane       rowq_ready.lane%type,
    attempt    rowq_ready.attempt%type,
    seq        rowq_ready.seq%type
);
type t_messages is table of t_message index by pls_integer;
type t_locked_row is record (
    row_id     rowid,
    message_id rowq_message.message_id%type,
    lane       rowq_ready.lane%type,
    attempt    rowq_ready.attempt%type,
    seq        rowq_ready.seq%type
);
type t_locked_rows is table of t_locked_row index by pls_integer;
type t_lane is record (
    lane      rowq_lane.lane%type,
    floor_seq rowq_lane.floor_seq%type
);
type t_lanes is table of t_lane index by pls_integer;
type t_new_message is record (
    message_id    rowq_message.message_id%type,
    body          clob,
    body_binary   blob,
    message_type  rowq_message.message_type%type,
    headers       clob,
    lane          rowq_message.lane%type,
    seq           rowq_message.seq%type,
    enqueued_at   rowq_message.enqueued_at%type,
    due_at        rowq_message.due_at%type,
    dedup_key     rowq_message.dedup_key%type,
    max_attempts  rowq_message.max_attempts%type,
    outcome       varchar2(20 char)
);
type t_new_messages is table of t_new_message index by pls_integer;
type t_numbers is table of number index by pls_integer;
type t_clobs is table of clob index by pls_integer;
type t_moments is table of timestamp(6) index by pls_integer;
type t_row_ids is table of rowid index by pls_integer;
type t_keys is table of raw(800) index by pls_integer;
type t_texts is table of rowq_message.dedup_key%type index by pls_integer;
-- Positions by the text of an id, or of a key in hexadecimal.
type t_places is table of pls_integer index by varchar2(4000);

procedure internal_add_lanes(p_part_id in number);
function internal_archive(p_part_id in number, p_limit in number)
return number;
procedure internal_back_off(
    p_queue         in t_queue,
    p_messages      in t_messages,
    p_delay_seconds in number,
    p_due_at        out nocopy t_moments
);
function internal_body_fault(
    p_body        in clob,
    p_body_binary in blob,
    p_max_length  in number
)
return varchar2;
procedure internal_check_batch_size(p_batch_size in number);
procedure internal_check_claim(p_claim_id in number);
procedure internal_check_range(
    p_name  in varchar2,
    p_value in number,
    p_low   in number,
    p_high  in number
);
procedure internal_check_settings(
    p_queue_name           in varchar2,
    p_lease_seconds        in number,
    p_max_attempts         in number,
    p_backoff_base_seconds in number,
    p_backoff_factor       in number,
    p_backoff_cap_seconds  in number,
    p_backoff_jitter       in number,
    p_archive_days         in number,
    p_max_body_length      in number
);
procedure internal_check_whole(
    p_name        in varchar2,
    p_value       in number,
    p_low         in number,
    p_high        in number,
    p_is_required in boolean default false
);
function internal_clob_part(p_text in clob, p_place in number, p_length in number)
return varchar2;
function internal_count_messages(p_part_id in number, p_limit in number)
return rowq_count;
procedure internal_cut_headers(
    p_messages in clob,
    p_headers  out nocopy t_clobs,
    p_rest     out nocopy clob
);
procedure internal_dequeue(
    p_queue_name    in varchar2,
    p_batch_size    in number,
    p_worker_name   in varchar2,
    p_lease_seconds in number,
    p_part_id       out number,
    p_claim_id      out number,
    p_lease_until   out timestamp
);
function internal_drop_days
return number;
procedure internal_drop_dead(p_locked in t_locked_rows, p_messages in out nocopy t_messages);
procedure internal_drop_delayed(p_locked in t_locked_rows, p_messages in out nocopy t_messages);
procedure internal_drop_keys(
    p_part_id in number,
    p_ids     in t_numbers,
    p_keys    in t_texts
);
procedure internal_drop_ready(p_locked in t_locked_rows, p_messages in out nocopy t_messages);
procedure internal_drop_rows(p_part_id in number, p_messages in t_messages);
procedure internal_empty_queue(p_part_id in number);
procedure internal_find(
    p_part_id     in number,
    p_message_id  in number,
    p_due_at      in out timestamp,
    p_state       out varchar2,
    p_lane        out number,
    p_attempt     out number,
    p_claim_id    out number,
    p_worker_name out varchar2,
    p_lease_until out timestamp,
    p_finished_at out timestamp
);
procedure internal_finish(
    p_part_id      in number,
    p_archive_days in number,
    p_messages     in t_messages,
    p_state        in varchar2
);
function internal_first_key(p_part_id in number, p_lane in number, p_from in number)
return number;
procedure internal_fit(p_part_id in number, p_claim_id in number);
function internal_floor(p_part_id in number, p_lane in number)
return number;
procedure internal_free_keys(p_part_id in number, p_messages in t_messages);
function internal_from_base64(p_text in clob)
return blob;
function internal_has_doorbell
return boolean;
function internal_header_fault(p_headers in clob)
return varchar2;
function internal_header_limit(p_headers in clob)
return varchar2;
procedure internal_health_queue(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_is_paused  in boolean,
    p_checks     in out nocopy rowq_checks
);
procedure internal_health_server(p_checks in out nocopy rowq_checks);
function internal_held(p_part_id in number, p_claim_id in number)
return t_messages;
procedure internal_hold_keys(p_part_id in number, p_new in out nocopy t_new_messages);
function internal_ids_given(p_message_ids in clob)
return rowq_ids;
function internal_ids_of(p_messages in t_messages)
return rowq_ids;
function internal_is_json(p_text in clob)
return boolean;
function internal_iso_text(p_moment in timestamp)
return varchar2;
procedure internal_keep_archive(
    p_queue    in t_queue,
    p_limit    in number,
    p_archived out number,
    p_purged   out number,
    p_dropped  out number
);
function internal_key_place(p_dedup_key in varchar2, p_number in number)
return varchar2;
function internal_lead(p_lock in number)
return boolean;
procedure internal_listen(
    p_part_id        in number,
    p_listened_until in out timestamp,
    p_has_doorbell   in out boolean
);
function internal_look_ready(p_part_id in number, p_limit in number)
return rowq_lines;
procedure internal_maintain(
    p_queue_name in varchar2,
    p_queue      in t_queue,
    p_limit      in number,
    p_kept       out nocopy rowq_kept
);
procedure internal_mark_leased(p_part_id in number, p_lines in out nocopy rowq_lines);
function internal_message_fault(
    p_body          in clob,
    p_body_binary   in blob,
    p_message_type  in varchar2,
    p_headers       in clob,
    p_priority      in number,
    p_delay_seconds in number,
    p_run_at        in timestamp,
    p_dedup_key     in varchar2,
    p_max_attempts  in number
)
return varchar2;
function internal_messages_json(
    p_part_id     in number,
    p_claim_id    in number,
    p_lease_until in timestamp
)
return clob;
function internal_microseconds(p_moment in timestamp)
return number;
function internal_moment(p_microseconds in number)
return timestamp;
procedure internal_move_floor(
    p_part_id in number,
    p_lane    in number,
    p_from    in number,
    p_to      in number
);
function internal_new_message(
    p_now           in timestamp,
    p_place         in number,
    p_body          in clob,
    p_body_binary   in blob,
    p_message_type  in varchar2,
    p_headers       in clob,
    p_priority      in number,
    p_delay_seconds in number,
    p_run_at        in timestamp,
    p_dedup_key     in varchar2,
    p_max_attempts  in number
)
return t_new_message;
procedure internal_note_error(
    p_part_id  in number,
    p_messages in t_messages,
    p_error    in clob
);
procedure internal_note_fault(p_part_id in number, p_fault in varchar2);
procedure internal_note_listener(p_part_id in number, p_listened_until in timestamp);
function internal_number_text(p_value in number)
return varchar2;
function internal_oldest_ready(p_part_id in number)
return timestamp;
procedure internal_open_lanes(p_part_id in number, p_lane in number);
procedure internal_open_lanes_for(p_part_id in number, p_new in t_new_messages);
function internal_open_lanes_of(p_part_id in number)
return t_lanes;
function internal_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_other    in varchar2 default 'stale'
)
return rowq_lines;
function internal_parse_message(
    p_message    in json_element_t,
    p_headers    in clob,
    p_now        in timestamp,
    p_place      in number,
    p_max_length in number,
    p_fault      out varchar2
)
return t_new_message;
function internal_parse_messages(p_messages in clob, p_max_length in number)
return t_new_messages;
function internal_parse_moment(p_text in varchar2)
return timestamp;
function internal_promote(p_part_id in number, p_limit in number)
return number;
function internal_purge_archive(
    p_part_id in number,
    p_before  in timestamp,
    p_limit   in number
)
return number;
function internal_purge_ready(p_part_id in number, p_limit in number)
return number;
function internal_purge_waiting(p_part_id in number, p_of_dead in boolean, p_limit in number)
return number;
procedure internal_reap(
    p_queue  in t_queue,
    p_limit  in number,
    p_reaped out number,
    p_died   out number
);
procedure internal_refuse(p_fault in varchar2);
procedure internal_refuse_claim(p_claim_id in number);
procedure internal_refuse_full(p_part_id in number, p_queue_name in varchar2);
procedure internal_refuse_queue(p_queue_name in varchar2);
procedure internal_remove_queue(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_force      in boolean
);
function internal_require_queue(p_queue_name in varchar2)
return t_queue;
procedure internal_rescan_floors(p_part_id in number);
function internal_retries(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_alive    in t_messages,
    p_due_at   in t_moments
)
return rowq_lines;
procedure internal_revive(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_locked   in t_locked_rows,
    p_messages out nocopy t_messages,
    p_lines    out nocopy rowq_lines
);
procedure internal_ring(p_part_id in number, p_listened_until in timestamp);
function internal_seconds_since(p_moment in timestamp, p_now in timestamp)
return number;
procedure internal_split(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_alive    out nocopy t_messages,
    p_dead     out nocopy t_messages
);
procedure internal_stop_leading(p_lock in number);
procedure internal_store(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_new        in out nocopy t_new_messages
);
function internal_take(p_part_id in number, p_claim_id in number, p_ids in rowq_ids)
return t_messages;
procedure internal_take_ready(
    p_part_id  in number,
    p_limit    in number,
    p_messages out nocopy t_messages
);
function internal_text_length(p_text in clob)
return number;
function internal_to_base64(p_bytes in blob)
return clob;
procedure internal_to_dead(p_part_id in number, p_messages in t_messages, p_error in clob);
procedure internal_to_delayed(
    p_part_id  in number,
    p_messages in t_messages,
    p_due_at   in t_moments,
    p_error    in clob
);
procedure internal_to_front(p_messages in out nocopy t_messages, p_spent in number);
procedure internal_to_ready(p_part_id in number, p_messages in t_messages);
function internal_wait_lock(p_part_id in number)
return number;
function internal_withdraw(p_part_id in number, p_ids in rowq_ids)
return t_messages;

procedure internal_add_lanes(p_part_id in number)
is
-- routine   internal_add_lanes
-- version   1
-- purpose   The lanes of a new queue.
-- promise   P13
-- locks     new rows only
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   other engines call it add_part, as they need a door and fences too
    v_lanes t_numbers;
    v_open  t_numbers;
begin
    for i in 1 .. 23 loop
        v_lanes(i) := i - 4;
        -- Open from the start: the default priority, the lane that most queues use.
        v_open(i) := case when i - 4 in (10, 11) then 1 else 0 end;
    end loop;

    forall i in 1 .. 23
        insert into rowq_lane (part_id, lane, is_open)
        values (p_part_id, v_lanes(i), v_open(i));
end internal_add_lanes;

function internal_archive(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_archive
-- version   1
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- promise   P19
-- locks     finished rows, passing over locked ones; message rows; new archive rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    type t_finished is record (
        finish_id   rowq_finished.finish_id%type,
        message_id  rowq_finished.message_id%type,
        lane        rowq_finished.lane%type,
        attempt     rowq_finished.attempt%type,
        state       rowq_finished.state%type,
        finished_at rowq_finished.finished_at%type
    );
    type t_finished_list is table of t_finished index by pls_integer;
    v_floor rowq_lane.floor_seq%type := internal_floor(p_part_id, -3);
    v_some  t_finished_list;
    cursor finished_rows is
        select /*+ index_rs_asc(f rowq_finished_pk) */
               f.finish_id, f.message_id, f.lane, f.attempt, f.state, f.finished_at
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= v_floor
        order by f.part_id, f.finish_id, f.message_id
        for update skip locked;
begin
    open finished_rows;
    fetch finished_rows bulk collect into v_some limit p_limit;
    close finished_rows;

    forall i in 1 .. v_some.count
        insert into rowq_archive (
            part_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
            dedup_key, headers, body, body_binary
        )
        select m.part_id, v_some(i).finished_at, m.message_id, v_some(i).lane,
               v_some(i).attempt, m.enqueued_at, v_some(i).state, m.message_type,
               m.dedup_key, m.headers, m.body, m.body_binary
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_some(i).message_id;
    forall i in 1 .. v_some.count
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_some(i).message_id;
    forall i in 1 .. v_some.count
        delete from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id = v_some(i).finish_id
          and f.message_id = v_some(i).message_id;
    return v_some.count;
end internal_archive;

procedure internal_back_off(
    p_queue         in t_queue,
    p_messages      in t_messages,
    p_delay_seconds in number,
    p_due_at        out nocopy t_moments
)
is
-- routine   internal_back_off
-- version   1
-- purpose   When failed messages are due again, one moment a message.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
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
            ) * (1 - p_queue.backoff_jitter * dbms_random.value)
        );
        p_due_at(i) := v_now + numtodsinterval(v_delay, 'second');
    end loop;
end internal_back_off;

function internal_body_fault(
    p_body        in clob,
    p_body_binary in blob,
    p_max_length  in number
)
return varchar2
is
-- routine   internal_body_fault
-- version   1
-- purpose   What is wrong with the length of a body, or null.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
    v_length number;
begin
    v_length := coalesce(dbms_lob.getlength(p_body), dbms_lob.getlength(p_body_binary), 0);
    -- An emoji counts as two here. To count it as one takes long: only where it matters.
    if p_body is not null and v_length > p_max_length then
        v_length := internal_text_length(p_body);
    end if;
    if v_length > p_max_length then
        return 'body is ' || internal_number_text(v_length) || ' long, and the queue takes '
            || internal_number_text(p_max_length) || ': max_body_length';
    end if;
    return null;
exception
    when e_never_stored then
        -- empty_clob() or empty_blob() as a caller passes it is a locator of nothing.
        return null;
end internal_body_fault;

procedure internal_check_batch_size(p_batch_size in number)
is
-- routine   internal_check_batch_size
-- version   1
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
begin
    internal_check_whole('batch_size', p_batch_size, 1, 10000, p_is_required => true);
end internal_check_batch_size;

procedure internal_check_claim(p_claim_id in number)
is
-- routine   internal_check_claim
-- version   1
-- purpose   Refuse a claim_id that is missing.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing elsewhere: part of the routines
begin
    if p_claim_id is null then
        internal_refuse('claim_id is missing');
    end if;
end internal_check_claim;

procedure internal_check_range(
    p_name  in varchar2,
    p_value in number,
    p_low   in number,
    p_high  in number
)
is
-- routine   internal_check_range
-- version   1
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
begin
    if p_value not between p_low and p_high then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_range;

procedure internal_check_settings(
    p_queue_name           in varchar2,
    p_lease_seconds        in number,
    p_max_attempts         in number,
    p_backoff_base_seconds in number,
    p_backoff_factor       in number,
    p_backoff_cap_seconds  in number,
    p_backoff_jitter       in number,
    p_archive_days         in number,
    p_max_body_length      in number
)
is
-- routine   internal_check_settings
-- version   1
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
begin
    if p_queue_name is null
       or length(p_queue_name) > 100
       or regexp_like(p_queue_name, '[[:cntrl:]]') then
        internal_refuse('queue_name must be 1 to 100 characters, none of them control');
    end if;
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    internal_check_whole('max_attempts', p_max_attempts, 1, 10000);
    internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    internal_check_whole('archive_days', p_archive_days, 0, 36500);
    internal_check_whole('max_body_length', p_max_body_length, 1, 33554432);
end internal_check_settings;

procedure internal_check_whole(
    p_name        in varchar2,
    p_value       in number,
    p_low         in number,
    p_high        in number,
    p_is_required in boolean default false
)
is
-- routine   internal_check_whole
-- version   1
-- purpose   Refuse a number outside its range, or with a fraction, or missing where it is required.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   elsewhere the type of a parameter keeps fractions out
begin
    if p_value is null and p_is_required then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got null'
        );
    end if;
    internal_check_range(p_name, p_value, p_low, p_high);
    if p_value <> trunc(p_value) then
        internal_refuse(
            p_name || ' must be a whole number, got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_whole;

function internal_clob_part(p_text in clob, p_place in number, p_length in number)
return varchar2
is
-- routine   internal_clob_part
-- version   1
-- purpose   What stands in a text from a place on, p_length at most; null behind its end.
-- promise   P15 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: place and length are UTF-16 units, in which a CLOB counts
    e_split exception;
    pragma exception_init(e_split, -22831);
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
begin
    return dbms_lob.substr(p_text, p_length, p_place);
exception
    when e_split then
        -- The part would end inside an emoji, which is two units. Go on after length2 of a part.
        return dbms_lob.substr(p_text, p_length - 1, p_place);
    when e_never_stored then
        -- empty_clob() as a caller passes it is a locator of nothing.
        return null;
end internal_clob_part;

function internal_count_messages(p_part_id in number, p_limit in number)
return rowq_count
is
-- routine   internal_count_messages
-- version   1
-- purpose   Messages of a queue by where they are, each counted up to p_limit.
-- promise   P13
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   PostgreSQL counts in queue_stats itself
    v_count rowq_count := rowq_count(p_part_id, 0, 0, 0, 0, null);
begin
    -- From the first row on and not from the floor: what was committed late counts, too.
    select count(*) into v_count.ready_count
    from (
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.delayed_count
    from (
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.leased_count
    from (
        select /*+ index_rs_asc(l rowq_leased_pk) */ l.place
        from rowq_leased l
        where l.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.dead_count
    from (
        select /*+ index_rs_asc(d rowq_dead_pk) */ d.message_id
        from rowq_dead d
        where d.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    v_count.oldest_seconds := internal_seconds_since(
        internal_oldest_ready(p_part_id), sys_extract_utc(systimestamp)
    );
    return v_count;
end internal_count_messages;

procedure internal_cut_headers(
    p_messages in clob,
    p_headers  out nocopy t_clobs,
    p_rest     out nocopy clob
)
is
-- routine   internal_cut_headers
-- version   1
-- purpose   Take the headers out of a batch as the text they are; in p_rest {} stands for them.
-- promise   P15 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: an object of JSON has values here, and rounds numbers
    c_quote  constant pls_integer := ascii('"');
    c_blanks constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_part      varchar2(32767);
    v_char      varchar2(4 char);
    v_code      pls_integer;
    v_place     pls_integer := 1;
    v_from      pls_integer;
    v_depth     pls_integer := 0;
    v_message   pls_integer := 1;
    v_word      varchar2(20 char);
    v_in_text   boolean := false;
    v_escaped   boolean := false;
    v_is_inside boolean := false;

    procedure put(p_text in varchar2)
    is
    begin
        if v_is_inside then
            p_headers(v_message) := p_headers(v_message) || p_text;
        elsif p_text is not null then
            dbms_lob.append(p_rest, p_text);
        end if;
    end put;
begin
    p_rest := ' ';
    -- Codes of characters are compared, because a session can have its own order of texts.
    loop
        v_part := internal_clob_part(p_messages, v_place, 500);
        exit when v_part is null;
        v_place := v_place + length2(v_part);
        v_from := 1;
        for i in 1 .. length(v_part) loop
            v_char := substr(v_part, i, 1);
            v_code := case when lengthb(v_char) = 1 then ascii(v_char) else 128 end;
            if v_in_text then
                v_in_text := v_escaped or v_code <> c_quote;
                v_escaped := v_code = ascii('\') and not v_escaped;
                v_word := substr(v_word || v_char, 1, 20);
            elsif v_code = c_quote then
                v_in_text := true;
                v_word := null;
            else
                if v_is_inside and v_depth = 2 and v_code in (ascii(','), ascii('}')) then
                    put(substr(v_part, v_from, i - v_from));
                    v_from := i;
                    v_is_inside := false;
                    -- What begins with an n is null, that is no headers.
                    if instr(ltrim(p_headers(v_message), c_blanks), 'n') = 1 then
                        p_headers.delete(v_message);
                        put('null');
                    else
                        put('{}');
                    end if;
                end if;
                v_depth := v_depth + case
                    when v_code in (ascii('{'), ascii('[')) then 1
                    when v_code in (ascii('}'), ascii(']')) then -1
                    else 0
                end;
                if v_depth = 1 and v_code = ascii(',') then
                    v_message := v_message + 1;
                elsif v_depth = 2 and v_code = ascii(':') and instr(v_word, 'headers"') = 1 then
                    put(substr(v_part, v_from, i - v_from + 1));
                    v_from := i + 1;
                    v_is_inside := true;
                    p_headers(v_message) := null;
                end if;
            end if;
        end loop;
        put(substr(v_part, v_from));
    end loop;
end internal_cut_headers;

procedure internal_dequeue(
    p_queue_name    in varchar2,
    p_batch_size    in number,
    p_worker_name   in varchar2,
    p_lease_seconds in number,
    p_part_id       out number,
    p_claim_id      out number,
    p_lease_until   out timestamp
)
is
-- routine   internal_dequeue
-- version   1
-- purpose   Lease up to p_batch_size ready messages to one new claim; a null claim when there is none.
-- promise   P02 P03 P05 P06 P07 P13 P18
-- locks     ready rows, passing over locked ones; the new claim row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   two routines share it; an empty look takes no lock and begins no transaction
    v_queue    t_queue;
    v_messages t_messages;
begin
    p_claim_id := null;
    p_lease_until := null;
    internal_check_whole('batch_size', p_batch_size, 1, 1000, p_is_required => true);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    if length(p_worker_name) > 200 then
        internal_refuse('worker_name is longer than 200 characters');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    p_part_id := v_queue.part_id;

    if v_queue.paused_at is null then
        internal_take_ready(v_queue.part_id, p_batch_size, v_messages);
        -- Nothing ready: what has become due meanwhile need not wait for maintain.
        if v_messages.count = 0 and internal_promote(v_queue.part_id, p_batch_size) > 0 then
            internal_take_ready(v_queue.part_id, p_batch_size, v_messages);
        end if;
    end if;

    if v_messages.count > 0 then
        p_claim_id := rowq_claim_seq.nextval;
        p_lease_until := sys_extract_utc(systimestamp)
            + numtodsinterval(coalesce(p_lease_seconds, v_queue.lease_seconds), 'second');
        insert into rowq_claim (part_id, claim_id, lease_until, worker_name)
        values (v_queue.part_id, p_claim_id, p_lease_until, p_worker_name);
        forall i in 1 .. v_messages.count
            insert into rowq_leased (part_id, claim_id, place, message_id, lane, attempt)
            values (
                v_queue.part_id, p_claim_id, v_messages(i).seq, v_messages(i).message_id,
                v_messages(i).lane, v_messages(i).attempt
            );
    end if;
end internal_dequeue;

function internal_drop_days
return number
is
-- routine   internal_drop_days
-- version   1
-- purpose   Drop partitions of the archive that are too old for every queue; returns how many.
-- promise   P19
-- locks     the archive's partition, tried
-- commits   a transaction of its own, as DDL commits; never the caller's
-- errors    none
-- differs   PostgreSQL drops them in the transaction of the caller
    pragma autonomous_transaction;
    -- In use by another session, or by the caller's own open transaction: another time.
    e_busy exception;
    e_deadlock exception;
    pragma exception_init(e_busy, -54);
    pragma exception_init(e_deadlock, -60);
    v_keep_from timestamp(6);
    v_bound     varchar2(4000 char);
    v_ends_at   timestamp(6);
    v_dropped   pls_integer := 0;
begin
    select cast(trunc(sys_extract_utc(systimestamp), 'dd') as timestamp)
           - numtodsinterval(max(q.archive_days), 'day')
    into v_keep_from
    from rowq_queue q;

    for each_day in (
        select p.partition_name, p.high_value
        from user_tab_partitions p
        where p.table_name = 'ROWQ_ARCHIVE'
          and p.interval = 'YES'
        order by p.partition_position
    ) loop
        -- A LONG, such as TIMESTAMP' 2026-11-22 00:00:00'.
        v_bound := each_day.high_value;
        v_ends_at := to_timestamp(
            regexp_substr(v_bound, '[0-9]{4}-[0-9]{2}-[0-9]{2}'), 'yyyy-mm-dd',
            'nls_calendar=gregorian'
        );
        exit when v_ends_at > v_keep_from or v_keep_from is null;
        begin
            execute immediate 'alter table rowq_archive drop partition '
                || dbms_assert.enquote_name(each_day.partition_name) || ' update indexes';
            v_dropped := v_dropped + 1;
        exception
            when e_busy or e_deadlock then
                exit;
        end;
    end loop;
    commit;
    return v_dropped;
end internal_drop_days;

procedure internal_drop_dead(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- routine   internal_drop_dead
-- version   1
-- purpose   Delete dead rows that are locked, and append their messages.
-- promise   P03
-- locks     dead rows, which the caller holds already
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of reset and withdraw
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_dead d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id;
    -- Only what this very statement has deleted is ours.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
        end if;
    end loop;
end internal_drop_dead;

procedure internal_drop_delayed(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- routine   internal_drop_delayed
-- version   1
-- purpose   Delete delayed rows that are locked, and append their messages.
-- promise   P03
-- locks     delayed rows, which the caller holds already
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of promote and withdraw
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_delayed d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id;
    -- Only what this very statement has deleted is ours.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
        end if;
    end loop;
end internal_drop_delayed;

procedure internal_drop_keys(
    p_part_id in number,
    p_ids     in t_numbers,
    p_keys    in t_texts
)
is
-- routine   internal_drop_keys
-- version   1
-- purpose   Free dedup keys of messages, one key a message; null where it has none.
-- promise   P12
-- locks     dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_ids  t_numbers;
    v_keys t_keys;
begin
    for i in 1 .. p_keys.count loop
        if p_keys(i) is not null then
            v_ids(v_ids.count + 1) := p_ids(i);
            v_keys(v_keys.count + 1) := utl_raw.cast_to_raw(p_keys(i));
        end if;
    end loop;

    -- Another message may have the key by now: a dead one gives it up.
    forall i in 1 .. v_keys.count
        delete from rowq_dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_keys(i)
          and d.message_id = v_ids(i);
end internal_drop_keys;

procedure internal_drop_ready(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- routine   internal_drop_ready
-- version   1
-- purpose   Delete ready rows that are locked, and append their messages.
-- promise   P03
-- locks     ready rows, which the caller holds already
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_ready r
        where r.rowid = p_locked(i).row_id
          and r.message_id = p_locked(i).message_id;
    -- Only what this very statement has deleted is ours.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
        end if;
    end loop;
end internal_drop_ready;

procedure internal_drop_rows(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_drop_rows
-- version   1
-- purpose   Delete messages for good, with their dedup keys.
-- promise   P04 P12
-- locks     message rows; dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_ids  t_numbers;
    v_keys t_texts;
begin
    forall i in 1 .. p_messages.count
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = p_messages(i).message_id
        returning m.message_id, m.dedup_key bulk collect into v_ids, v_keys;
    internal_drop_keys(p_part_id, v_ids, v_keys);
end internal_drop_rows;

procedure internal_empty_queue(p_part_id in number)
is
-- routine   internal_empty_queue
-- version   1
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of drop_queue
begin
    delete from rowq_ready r where r.part_id = p_part_id;
    delete from rowq_delayed d where d.part_id = p_part_id;
    delete from rowq_leased l where l.part_id = p_part_id;
    delete from rowq_claim c where c.part_id = p_part_id;
    delete from rowq_dead d where d.part_id = p_part_id;
    delete from rowq_dedup d where d.part_id = p_part_id;
    delete from rowq_finished f where f.part_id = p_part_id;
    delete from rowq_message m where m.part_id = p_part_id;
    delete from rowq_archive a where a.part_id = p_part_id;
    delete from rowq_lane l where l.part_id = p_part_id;
    delete from rowq_queue q where q.part_id = p_part_id;
end internal_empty_queue;

procedure internal_find(
    p_part_id     in number,
    p_message_id  in number,
    p_due_at      in out timestamp,
    p_state       out varchar2,
    p_lane        out number,
    p_attempt     out number,
    p_claim_id    out number,
    p_worker_name out varchar2,
    p_lease_until out timestamp,
    p_finished_at out timestamp
)
is
-- routine   internal_find
-- version   1
-- purpose   Where a message that has a body is; p_due_at comes in as its last place among the delayed.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_due_at constant timestamp(6) := p_due_at;
    cursor waiting is
        select 'delayed' as state, d.lane, d.attempt, d.due_at,
               cast(null as timestamp) as finished_at
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at = v_due_at
          and d.message_id = p_message_id
        union all
        select 'dead' as state, d.lane, d.attempt, cast(null as timestamp) as due_at,
               d.died_at as finished_at
        from rowq_dead d
        where d.part_id = p_part_id
          and d.message_id = p_message_id
        union all
        select f.state, f.lane, f.attempt, cast(null as timestamp) as due_at,
               f.finished_at
        from rowq_finished f
        where f.part_id = p_part_id
          and f.message_id = p_message_id;
    cursor held is
        select 'leased' as state, l.lane, l.attempt, c.claim_id, c.worker_name, c.lease_until
        from rowq_claim c
        join rowq_leased l
          on l.part_id = c.part_id
         and l.claim_id = c.claim_id
        where c.part_id = p_part_id
          and l.message_id = p_message_id;
    -- By its first place, for a message that was never given back; then anywhere.
    cursor first_place is
        select 'ready' as state, r.lane, r.attempt
        from rowq_message m
        join rowq_ready r
          on r.part_id = m.part_id
         and r.lane = m.lane
         and r.seq = m.seq
         and r.message_id = m.message_id
        where m.part_id = p_part_id
          and m.message_id = p_message_id;
    cursor any_place is
        select 'ready' as state, r.lane, r.attempt
        from rowq_ready r
        where r.part_id = p_part_id
          and r.message_id = p_message_id;
begin
    p_due_at := null;
    p_state := null;
    open waiting;
    fetch waiting into p_state, p_lane, p_attempt, p_due_at, p_finished_at;
    close waiting;
    if p_state is null then
        open held;
        fetch held into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_lease_until;
        close held;
    end if;
    if p_state is null then
        open first_place;
        fetch first_place into p_state, p_lane, p_attempt;
        close first_place;
    end if;
    if p_state is null then
        open any_place;
        fetch any_place into p_state, p_lane, p_attempt;
        close any_place;
    end if;
    if p_state is null then
        -- It changed its place between two of these looks.
        p_state := 'leased';
    end if;
end internal_find;

procedure internal_finish(
    p_part_id      in number,
    p_archive_days in number,
    p_messages     in t_messages,
    p_state        in varchar2
)
is
-- routine   internal_finish
-- version   1
-- purpose   Remove finished messages, or note them for the archive.
-- promise   P04 P12
-- locks     message rows; dedup rows; new finished rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_now       constant timestamp(6) := sys_extract_utc(systimestamp);
    v_finish_id rowq_finished.finish_id%type;
begin
    if p_messages.count = 0 then
        return;
    end if;
    if p_archive_days = 0 then
        internal_drop_rows(p_part_id, p_messages);
        return;
    end if;

    v_finish_id := rowq_claim_seq.nextval;
    forall i in 1 .. p_messages.count
        insert into rowq_finished (
            part_id, finish_id, message_id, lane, attempt, state, finished_at
        )
        values (
            p_part_id, v_finish_id, p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, p_state, v_now
        );
    internal_free_keys(p_part_id, p_messages);
end internal_finish;

function internal_first_key(p_part_id in number, p_lane in number, p_from in number)
return number
is
-- routine   internal_first_key
-- version   1
-- purpose   The first live key of a lane from p_from on, or null.
-- promise   P13 P14
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_since  constant timestamp(6) := internal_moment(case when p_lane = -2 then p_from else 0 end);
    v_first  number;
    v_due_at timestamp(6);
    -- One fetch of an ordered cursor: the walk ends at the first row.
    cursor claims is
        select /*+ index_rs_asc(c rowq_claim_pk) */ c.claim_id
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id >= p_from
        order by c.part_id, c.claim_id;
    cursor delayed_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.due_at
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
        order by d.part_id, d.due_at, d.message_id;
    cursor finished_rows is
        select /*+ index_rs_asc(f rowq_finished_pk) */ f.finish_id
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= p_from
        order by f.part_id, f.finish_id, f.message_id;
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_from
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    case p_lane
        when -1 then
            open claims;
            fetch claims into v_first;
            close claims;
        when -2 then
            open delayed_rows;
            fetch delayed_rows into v_due_at;
            close delayed_rows;
            v_first := internal_microseconds(v_due_at);
        when -3 then
            open finished_rows;
            fetch finished_rows into v_first;
            close finished_rows;
        else
            open ready_rows;
            fetch ready_rows into v_first;
            close ready_rows;
    end case;
    return v_first;
end internal_first_key;

procedure internal_fit(p_part_id in number, p_claim_id in number)
is
-- routine   internal_fit
-- version   1
-- purpose   Give back those messages of a new claim that go beyond 64 MB; the first one stays.
-- promise   P02 P05
-- locks     rows of leased, which nobody else sees yet; new ready rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_most constant number := 67108864;
    v_held  t_messages := internal_held(p_part_id, p_claim_id);
    v_rest  t_messages;
    v_place number := 0;
    v_total number := 0;
begin
    for each_message in (
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               m.headers, m.body, m.body_binary
        from rowq_leased l
        join rowq_message m
          on m.part_id = l.part_id
         and m.message_id = l.message_id
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
        order by l.part_id, l.claim_id, l.place
    ) loop
        v_place := v_place + 1;
        v_total := v_total + coalesce(dbms_lob.getlength(each_message.body), 0)
            + coalesce(dbms_lob.getlength(each_message.body_binary), 0) * 4 / 3
            + coalesce(dbms_lob.getlength(each_message.headers), 0) + 1000;
        if v_total > c_most and v_place > 1 then
            v_rest(v_rest.count + 1) := v_held(v_place);
        end if;
    end loop;

    forall i in 1 .. v_rest.count
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
          and l.place = v_rest(i).seq;
    internal_to_front(v_rest, 1);
    internal_to_ready(p_part_id, v_rest);
end internal_fit;

function internal_floor(p_part_id in number, p_lane in number)
return number
is
-- routine   internal_floor
-- version   1
-- purpose   Where the live rows of a lane begin; 0 for a lane that is not there.
-- promise   P13
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_floor rowq_lane.floor_seq%type;
begin
    select coalesce(max(l.floor_seq), 0) into v_floor
    from rowq_lane l
    where l.part_id = p_part_id
      and l.lane = p_lane;
    return v_floor;
end internal_floor;

procedure internal_free_keys(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_free_keys
-- version   1
-- purpose   Free the dedup keys of messages that are finished or dead.
-- promise   P12
-- locks     dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    t_numbers;
    v_keys   t_texts;
begin
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.dedup_key
    bulk collect into v_ids, v_keys
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.dedup_key is not null;
    internal_drop_keys(p_part_id, v_ids, v_keys);
end internal_free_keys;

function internal_from_base64(p_text in clob)
return blob
is
-- routine   internal_from_base64
-- version   1
-- purpose   The bytes of a base64 text, line breaks allowed; null when it is none.
-- promise   P15 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have a function for it
    -- A whole number of groups, and few enough bytes even where a character takes four.
    c_step constant pls_integer := 8000;
    c_alphabet constant varchar2(64 char) :=
        'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    v_text   clob := replace(replace(p_text, chr(10)), chr(13));
    v_length pls_integer := coalesce(dbms_lob.getlength(v_text), 0);
    v_bytes  blob;
    v_chunk  varchar2(32767);
    v_digits varchar2(32767);
    v_raw    raw(32767);
    v_place  pls_integer := 1;
begin
    if mod(v_length, 4) <> 0 then
        return null;
    end if;
    dbms_lob.createtemporary(v_bytes, true, dbms_lob.call);
    while v_place <= v_length loop
        v_chunk := internal_clob_part(v_text, v_place, c_step);
        v_place := v_place + length2(v_chunk);
        v_digits := case when v_place > v_length then rtrim(v_chunk, '=') else v_chunk end;
        -- Not a regular expression, whose ranges follow the session's NLS_SORT.
        if ltrim(v_digits, c_alphabet) is not null or length(v_digits) < length(v_chunk) - 2 then
            return null;
        end if;
        v_raw := utl_encode.base64_decode(utl_raw.cast_to_raw(v_chunk));
        dbms_lob.writeappend(v_bytes, utl_raw.length(v_raw), v_raw);
    end loop;
    return v_bytes;
end internal_from_base64;

function internal_has_doorbell
return boolean
is
-- routine   internal_has_doorbell
-- version   1
-- purpose   Whether doorbell.sql was run.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own
    v_count pls_integer;
begin
    select count(*) into v_count
    from user_objects o
    where o.object_name = 'ROWQ_DOORBELL'
      and o.object_type = 'PACKAGE BODY';
    return v_count > 0;
end internal_has_doorbell;

function internal_header_fault(p_headers in clob)
return varchar2
is
-- routine   internal_header_fault
-- version   1
-- purpose   What is wrong with headers, or null.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of message_fault
begin
    if p_headers is null then
        return null;
    end if;
    if not internal_is_json(p_headers) then
        return 'headers must be a JSON object';
    end if;
    return internal_header_limit(p_headers);
end internal_header_fault;

function internal_header_limit(p_headers in clob)
return varchar2
is
-- routine   internal_header_limit
-- version   1
-- purpose   What in headers, which are JSON, not every JSON reader would take, or null.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of header_fault
    c_quote constant pls_integer := ascii('"');
    v_part     varchar2(32767);
    v_char     varchar2(4 char);
    v_code     pls_integer;
    v_place    pls_integer := 1;
    v_length   pls_integer := 0;
    v_depth    pls_integer := 0;
    v_digits   pls_integer := 0;
    v_exponent pls_integer;
    v_in_text  boolean := false;
    v_escaped  boolean := false;
begin
    -- Codes of characters are compared, because a session can have its own order of texts.
    loop
        -- Short parts, as substr counts its way from the start of each.
        v_part := internal_clob_part(p_headers, v_place, 500);
        exit when v_part is null;
        v_place := v_place + length2(v_part);
        v_length := v_length + length(v_part);
        if v_length > 65536 then
            return 'headers are longer than 65536 characters';
        end if;
        for i in 1 .. length(v_part) loop
            -- What ascii returns of an emoji, its four bytes as a number, is no pls_integer.
            v_char := substr(v_part, i, 1);
            v_code := case when lengthb(v_char) = 1 then ascii(v_char) else 128 end;
            if v_depth = 0 and v_code not in (9, 10, 13, 32, ascii('{')) then
                return 'headers must be a JSON object';
            end if;
            if v_in_text then
                v_in_text := v_escaped or v_code <> c_quote;
                v_escaped := v_code = ascii('\') and not v_escaped;
            elsif v_code between ascii('0') and ascii('9') then
                if v_exponent is null then
                    v_digits := v_digits + 1;
                else
                    v_exponent := v_exponent * 10 + v_code - ascii('0');
                end if;
                if v_digits > 100 or v_exponent > 200 then
                    return 'headers have a number of too many digits';
                end if;
            elsif v_code in (ascii('e'), ascii('E')) and v_digits > 0 then
                v_exponent := 0;
            elsif v_code not in (ascii('.'), ascii('+'), ascii('-')) then
                v_digits := 0;
                v_exponent := null;
                v_in_text := v_code = c_quote;
                v_depth := v_depth + case
                    when v_code in (ascii('{'), ascii('[')) then 1
                    when v_code in (ascii('}'), ascii(']')) then -1
                    else 0
                end;
            end if;
            -- A value inside counts as one deeper: all but blanks, commas, colons and brackets.
            if v_depth > 20
               or v_depth = 20 and v_code not in (9, 10, 13, 32, 44, 58, 91, 93, 123, 125) then
                return 'headers are nested more than 20 deep';
            end if;
        end loop;
    end loop;
    return null;
end internal_header_limit;

procedure internal_health_queue(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_is_paused  in boolean,
    p_checks     in out nocopy rowq_checks
)
is
-- routine   internal_health_queue
-- version   1
-- purpose   Appends the checks of a queue.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_dead        pls_integer;
    v_due_at      timestamp(6);
    v_lease_until timestamp(6);

    procedure note(
        p_name in varchar2, p_value in number, p_warning in number, p_critical in number,
        p_detail in varchar2
    )
    is
    begin
        p_checks.extend;
        p_checks(p_checks.last) := rowq_check(
            p_name, p_queue_name, coalesce(p_value, 0), p_warning, p_critical, p_detail
        );
    end note;
begin
    note(
        'oldest_ready', internal_seconds_since(internal_oldest_ready(p_part_id), v_now), 300, 3600,
        'seconds that the oldest ready message has waited'
        || case when p_is_paused then '; the queue is paused' end
    );

    select count(*) into v_dead
    from (
        select d.message_id
        from rowq_dead d
        where d.part_id = p_part_id
        fetch first 1000 rows only
    ) h;
    note(
        'dead_messages', v_dead, 1, 1000,
        'dead messages, counted up to 1000; see list_dead and reset'
    );

    select min(d.due_at) into v_due_at
    from rowq_delayed d
    where d.part_id = p_part_id
      and d.due_at <= v_now;
    note(
        'overdue_delayed', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that the oldest due message has not been promoted; call maintain every second'
    );

    select min(c.lease_until) into v_lease_until
    from rowq_claim c
    where c.part_id = p_part_id
      and c.lease_until <= v_now;
    note(
        'expired_leases', internal_seconds_since(v_lease_until, v_now), 30, 300,
        'seconds that the oldest expired lease has not been reaped; call maintain every second'
    );
end internal_health_queue;

procedure internal_health_server(p_checks in out nocopy rowq_checks)
is
-- routine   internal_health_server
-- version   1
-- purpose   Appends the checks that concern all queues: old transactions, the archive, the sequence.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own
    -- Table or view does not exist, or insufficient privileges: the owner may not look.
    e_no_view exception;
    e_no_right exception;
    pragma exception_init(e_no_view, -942);
    pragma exception_init(e_no_right, -1031);
    v_seconds  number;
    v_session  varchar2(200 char);
    v_horizon  varchar2(500 char) := 'no transaction is older than a second';
    v_fault    rowq_meta.value%type;
    v_fault_at rowq_meta.changed_at%type;
    v_newest   number := 0;
    v_last     number := 0;
    v_some     number;
    v_parts    t_numbers;
begin
    begin
        -- By text, so that the package compiles where the owner has no right to these views.
        execute immediate q'[
            select max((sysdate - t.start_date) * 86400),
                   max(s.sid || ',' || s.serial#) keep (dense_rank first order by t.start_date)
            from v$transaction t
            join v$session s on s.taddr = t.addr
            where s.sid <> to_number(sys_context('userenv', 'sid'))
        ]' into v_seconds, v_session;
        if v_seconds >= 1 then
            v_horizon := 'session ' || v_session
                || ' has the oldest open transaction; what it has taken or sent stays with it';
        end if;
    exception
        when e_no_view or e_no_right then
            v_horizon := 'unknown: the owner of rowq has no right to v_$transaction and v_$session';
    end;
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'clean_up_horizon', null, coalesce(v_seconds, 0), 300, 3600, v_horizon
    );

    select max(m.value) keep (dense_rank last order by m.changed_at), max(m.changed_at)
    into v_fault, v_fault_at
    from rowq_meta m
    where m.name like 'archive_fault.%';
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'archive_fault', null, case when v_fault is null then 0 else 1 end, 1, 1,
        case
            when v_fault is null then 'the archive had no fault'
            else substr(
                to_char(v_fault_at, 'yyyy-mm-dd"T"hh24:mi:ss', 'nls_calendar=gregorian') || 'Z '
                || v_fault, 1, 500
            )
        end
    );

    select q.part_id bulk collect into v_parts
    from rowq_queue q;
    for i in 1 .. v_parts.count loop
        select max(m.message_id) into v_some
        from rowq_message m
        where m.part_id = v_parts(i);
        v_newest := greatest(v_newest, coalesce(v_some, 0));
    end loop;
    -- The first number that no session has in its cache.
    select max(s.last_number) into v_last
    from user_sequences s
    where s.sequence_name = 'ROWQ_MESSAGE_SEQ';
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'sequence_behind', null, greatest(v_newest - v_last + 1, 0), 1, 1,
        case
            when v_newest >= v_last
                then 'rowq_message_seq is behind the data: alter sequence rowq_message_seq restart'
                    || ' start with ' || internal_number_text(v_newest + 1)
            else 'rowq_message_seq is ahead of every message'
        end
    );
end internal_health_server;

function internal_held(p_part_id in number, p_claim_id in number)
return t_messages
is
-- routine   internal_held
-- version   1
-- purpose   The messages that a claim holds, in the order in which they were given out.
-- promise   P08
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines read them from the claim
    v_held t_messages;
begin
    select l.message_id, l.lane, l.attempt, l.place
    bulk collect into v_held
    from rowq_leased l
    where l.part_id = p_part_id
      and l.claim_id = p_claim_id
    order by l.part_id, l.claim_id, l.place;
    return v_held;
end internal_held;

procedure internal_hold_keys(p_part_id in number, p_new in out nocopy t_new_messages)
is
-- routine   internal_hold_keys
-- version   1
-- purpose   Give every message an id and take its dedup key; where another one has the key, its id.
-- promise   P12
-- locks     new dedup rows; waits for open enqueues of the same keys, in key order
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_most_tries constant pls_integer := 100;
    v_order t_places;
    v_at    varchar2(4000 char);
    v_key   raw(800);
    v_tries pls_integer;
    v_other rowq_dedup.message_id%type;
begin
    for i in 1 .. p_new.count loop
        p_new(i).outcome := 'enqueued';
        if p_new(i).dedup_key is null then
            p_new(i).message_id := rowq_message_seq.nextval;
        else
            v_order(internal_key_place(p_new(i).dedup_key, i)) := i;
        end if;
    end loop;

    -- By key, so that two batches with the same keys cannot wait for each other.
    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(p_new(v_order(v_at)).dedup_key);
        p_new(v_order(v_at)).message_id := rowq_message_seq.nextval;
        v_tries := 0;
        loop
            begin
                insert into rowq_dedup (part_id, dedup_key, message_id)
                values (p_part_id, v_key, p_new(v_order(v_at)).message_id);
                exit;
            exception
                when dup_val_on_index then
                    -- Another producer had the key before, or while this one waited for it.
                    select max(d.message_id) into v_other
                    from rowq_dedup d
                    where d.part_id = p_part_id
                      and d.dedup_key = v_key;
                    if v_other is not null then
                        p_new(v_order(v_at)).message_id := v_other;
                        p_new(v_order(v_at)).outcome := 'duplicate';
                        exit;
                    end if;
                    -- Free by now: once more. Endless only for a serializable transaction, which
                    -- does not see what it has collided with.
                    v_tries := v_tries + 1;
                    if v_tries = c_most_tries then
                        raise;
                    end if;
            end;
        end loop;
        v_at := v_order.next(v_at);
    end loop;
end internal_hold_keys;

function internal_ids_given(p_message_ids in clob)
return rowq_ids
is
-- routine   internal_ids_given
-- version   1
-- purpose   The ids in a JSON array; null stays null, anything else is refused.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   other engines check a list in check_ids and read it where they need it
    c_fault constant varchar2(100 char) :=
        'message_ids must be a JSON array of at most 10000 ids, none of them null';
    v_list    json_element_t;
    v_array   json_array_t;
    v_element json_element_t;
    v_id      number;
    v_ids     rowq_ids := rowq_ids();
begin
    if p_message_ids is null then
        return null;
    end if;
    if not internal_is_json(p_message_ids) then
        internal_refuse(c_fault);
    end if;
    v_list := json_element_t.parse(p_message_ids);
    if not v_list.is_array() then
        internal_refuse(c_fault);
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        internal_refuse(c_fault);
    end if;

    v_ids.extend(v_array.get_size());
    for i in 1 .. v_ids.count loop
        v_element := v_array.get(i - 1);
        if not v_element.is_number() then
            internal_refuse(c_fault);
        end if;
        v_id := v_array.get_number(i - 1);
        if v_id <> trunc(v_id) or abs(v_id) >= 1e19 then
            internal_refuse(c_fault);
        end if;
        v_ids(i) := v_id;
    end loop;
    return v_ids;
end internal_ids_given;

function internal_ids_of(p_messages in t_messages)
return rowq_ids
is
-- routine   internal_ids_of
-- version   1
-- purpose   The ids of messages, as SQL knows a list.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines keep messages as a list already
    v_ids rowq_ids := rowq_ids();
begin
    v_ids.extend(p_messages.count);
    for i in 1 .. p_messages.count loop
        v_ids(i) := p_messages(i).message_id;
    end loop;
    return v_ids;
end internal_ids_of;

function internal_is_json(p_text in clob)
return boolean
is
-- routine   internal_is_json
-- version   1
-- purpose   Whether a text is JSON in the strict sense; false for null.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have a function for it
    v_count pls_integer;
begin
    -- The condition is known to SQL only.
    select count(*) into v_count
    from dual
    where p_text is json strict;
    return v_count = 1;
end internal_is_json;

function internal_iso_text(p_moment in timestamp)
return varchar2
is
-- routine   internal_iso_text
-- version   1
-- purpose   A moment in ISO 8601, UTC, with microseconds; null stays null.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have a function for it
begin
    return case when p_moment is not null then
        to_char(p_moment, 'yyyy-mm-dd"T"hh24:mi:ss.ff6', 'nls_calendar=gregorian') || '+00:00'
    end;
end internal_iso_text;

procedure internal_keep_archive(
    p_queue    in t_queue,
    p_limit    in number,
    p_archived out number,
    p_purged   out number,
    p_dropped  out number
)
is
-- routine   internal_keep_archive
-- version   1
-- purpose   The archive part of maintain: move, purge whole days, drop partitions; a fault in it is noted.
-- promise   P09 P19
-- locks     as archive and purge_archive; with a fault a row of meta
-- commits   as internal_drop_days; never the caller's transaction
-- errors    none
-- differs   a fault is noted in meta, where health reads it: this engine's calls have no warnings
    -- The user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_today constant timestamp(6) := cast(
        trunc(sys_extract_utc(systimestamp), 'dd') as timestamp
    );
    v_fault rowq_meta.value%type;
    v_kept  rowq_archive.message_id%type;
    cursor kept is
        select a.message_id
        from rowq_archive a
        where a.part_id = p_queue.part_id;
begin
    p_archived := 0;
    p_purged := 0;
    p_dropped := 0;
    savepoint rowq_archive_part;
    if p_queue.archive_days = 0 then
        -- What is left from a time with an archive.
        open kept;
        fetch kept into v_kept;
        close kept;
        if v_kept is null and internal_first_key(p_queue.part_id, -3, 0) is null then
            internal_note_fault(p_queue.part_id, null);
            return;
        end if;
    end if;

    -- Before this transaction has touched the archive, so that it does not stand in its own way.
    p_dropped := internal_drop_days;
    p_archived := internal_archive(p_queue.part_id, p_limit);
    -- Whole days, but for a queue that keeps nothing any more.
    p_purged := internal_purge_archive(
        p_queue.part_id,
        case
            when p_queue.archive_days > 0
                then v_today - numtodsinterval(p_queue.archive_days, 'day')
            else sys_extract_utc(systimestamp)
        end,
        p_limit
    );
    internal_note_fault(p_queue.part_id, null);
exception
    when e_cancelled then
        raise;
    when others then
        -- A full tablespace, a partition that is offline: promoting and reaping go on.
        v_fault := substr(sqlerrm, 1, 500);
        rollback to savepoint rowq_archive_part;
        p_archived := 0;
        p_purged := 0;
        internal_note_fault(p_queue.part_id, v_fault);
end internal_keep_archive;

function internal_key_place(p_dedup_key in varchar2, p_number in number)
return varchar2
is
-- routine   internal_key_place
-- version   1
-- purpose   The place of a dedup key among others, as an index of t_places; p_number tells equal keys apart.
-- promise   P12
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: on other engines the order of texts is not the session's to choose
    v_hex varchar2(1600 char);
begin
    -- Digits alone: where letters stand is for each session's nls_sort to say, and two sessions
    -- that take the same keys must take them in the same order.
    v_hex := rawtohex(utl_raw.cast_to_raw(p_dedup_key));
    return translate(v_hex, 'ABCDEF', '999999')
        || translate(v_hex, '0123456789ABCDEF', '0000000000123456')
        || to_char(p_number, 'fm0000000000000000000');
end internal_key_place;

function internal_lead(p_lock in number)
return boolean
is
-- routine   internal_lead
-- version   1
-- purpose   Wait for a second at most to be the one waiter of a queue that looks for all.
-- promise   none
-- locks     the session's lock p_lock, kept until internal_stop_leading or the end of the session
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own
    v_result number;
begin
    -- By text, so that the package compiles where the owner has no right to dbms_lock.
    execute immediate
        'begin :1 := sys.dbms_lock.request(id => :2, lockmode => sys.dbms_lock.x_mode,'
        || ' timeout => 1, release_on_commit => false); end;'
        using out v_result, in p_lock;
    -- 0 granted, 1 timed out, 4 left behind in this session by a call that was broken off. Others
    -- come at once, and waiting goes on without a leader.
    if v_result not in (0, 1, 4) then
        dbms_session.sleep(1);
    end if;
    return v_result in (0, 4);
end internal_lead;

procedure internal_listen(
    p_part_id        in number,
    p_listened_until in out timestamp,
    p_has_doorbell   in out boolean
)
is
-- routine   internal_listen
-- version   1
-- purpose   Say that somebody listens at a queue; where that was said before, wait for a ring, for a second at most.
-- promise   none
-- locks     the queue row, passed over when locked; none while waiting
-- commits   never; the caller commits at once, and looks before it listens again
-- errors    none
-- differs   this engine's own
    -- The user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    if p_listened_until is null or p_listened_until < v_now + numtodsinterval(2, 'second') then
        -- For a while only, so that nobody rings for long for a session that was killed.
        p_listened_until := v_now + numtodsinterval(6, 'second');
        internal_note_listener(p_part_id, p_listened_until);
        return;
    end if;
    -- By text, as the package is there only by choice.
    execute immediate 'begin rowq_doorbell.listen(:1); end;' using p_part_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- A doorbell that is broken or gone: go on without.
        p_has_doorbell := false;
end internal_listen;

function internal_look_ready(p_part_id in number, p_limit in number)
return rowq_lines
is
-- routine   internal_look_ready
-- version   1
-- purpose   The next p_limit ready messages, best lane first.
-- promise   P05 P13
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of peek
    v_lanes t_lanes := internal_open_lanes_of(p_part_id);
    v_left  pls_integer;
    v_some  t_messages;
    v_lines rowq_lines := rowq_lines();
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    for i in 1 .. v_lanes.count loop
        exit when v_lines.count >= p_limit;
        v_left := p_limit - v_lines.count;
        open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_rows bulk collect into v_some limit v_left;
        close lane_rows;
        for j in 1 .. v_some.count loop
            v_lines.extend;
            v_lines(v_lines.last) := rowq_line(
                v_lines.last, v_some(j).message_id, v_some(j).lane, v_some(j).attempt, null, null
            );
        end loop;
    end loop;
    return v_lines;
end internal_look_ready;

procedure internal_maintain(
    p_queue_name in varchar2,
    p_queue      in t_queue,
    p_limit      in number,
    p_kept       out nocopy rowq_kept
)
is
-- routine   internal_maintain
-- version   1
-- purpose   Housekeeping of one queue by the one session that is elected for it.
-- promise   P09 P11 P13 P14 P19
-- locks     a row of lane, passed over when locked, to the end of the transaction; as what it calls
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   elected by a row and not by a named lock, as dbms_lock would need a right of its own
    v_lane rowq_lane.lane%type;
    cursor seat is
        select l.lane
        from rowq_lane l
        where l.part_id = p_queue.part_id
          and l.lane = -1
        for update skip locked;
begin
    p_kept := rowq_kept(p_queue_name, 0, 0, 0, 0, 0, 0, 0);
    open seat;
    fetch seat into v_lane;
    close seat;
    if v_lane is null then
        return;
    end if;

    p_kept.elected := 1;
    -- First the floors of what is read below, so that what was committed late is found.
    internal_rescan_floors(p_queue.part_id);
    p_kept.promoted := internal_promote(p_queue.part_id, p_limit);
    internal_reap(p_queue, p_limit, p_kept.reaped, p_kept.died);
    if p_kept.promoted + p_kept.reaped > 0 then
        internal_ring(p_queue.part_id, p_queue.listened_until);
    end if;
    internal_keep_archive(
        p_queue, p_limit, p_kept.archived, p_kept.purged, p_kept.partitions_dropped
    );
end internal_maintain;

procedure internal_mark_leased(p_part_id in number, p_lines in out nocopy rowq_lines)
is
-- routine   internal_mark_leased
-- version   1
-- purpose   Say leased of what was not found but still has a body: it is in a worker's hands.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of cancel
    v_asked  rowq_ids := rowq_ids();
    v_leased t_numbers;
    v_places t_places;
begin
    for i in 1 .. p_lines.count loop
        if p_lines(i).outcome = 'not_found' then
            v_asked.extend;
            v_asked(v_asked.last) := p_lines(i).message_id;
        end if;
    end loop;
    if v_asked.count = 0 then
        return;
    end if;

    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_leased
    from table(v_asked) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where not exists (
        select null
        from rowq_finished f
        where f.part_id = p_part_id
          and f.message_id = m.message_id
    );
    for i in 1 .. v_leased.count loop
        v_places(internal_number_text(v_leased(i))) := i;
    end loop;
    for i in 1 .. p_lines.count loop
        if p_lines(i).outcome = 'not_found'
           and v_places.exists(internal_number_text(p_lines(i).message_id)) then
            p_lines(i).outcome := 'leased';
        end if;
    end loop;
end internal_mark_leased;

function internal_message_fault(
    p_body          in clob,
    p_body_binary   in blob,
    p_message_type  in varchar2,
    p_headers       in clob,
    p_priority      in number,
    p_delay_seconds in number,
    p_run_at        in timestamp,
    p_dedup_key     in varchar2,
    p_max_attempts  in number
)
return varchar2
is
-- routine   internal_message_fault
-- version   1
-- purpose   What is wrong with the arguments of enqueue, or null.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
begin
    return case
        when p_priority is null
             or p_priority not between 0 and 9
             or p_priority <> trunc(p_priority)
            then 'priority must be between 0 and 9, got ' || internal_number_text(p_priority)
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary exclude each other'
        when length(p_message_type) > 200
            then 'message_type is longer than 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at exclude each other'
        when p_delay_seconds not between 0 and 315360000
            then 'delay_seconds must be between 0 and 315360000, got '
                || internal_number_text(p_delay_seconds)
        when p_run_at > sys_extract_utc(systimestamp) + numtodsinterval(3650, 'day')
            then 'run_at must be a moment within the next ten years'
        when length(p_dedup_key) > 200
            then 'dedup_key must be 1 to 200 characters'
        when p_max_attempts not between 1 and 10000 or p_max_attempts <> trunc(p_max_attempts)
            then 'max_attempts must be between 1 and 10000, got '
                || internal_number_text(p_max_attempts)
        else internal_header_fault(p_headers)
    end;
end internal_message_fault;

function internal_messages_json(
    p_part_id     in number,
    p_claim_id    in number,
    p_lease_until in timestamp
)
return clob
is
-- routine   internal_messages_json
-- version   1
-- purpose   What dequeue_fast returns for a claim, as a JSON array.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of dequeue_wait
    v_object json_object_t;
    v_text   clob := '[';

    procedure put_text(p_key in varchar2, p_text in clob)
    is
    begin
        if p_text is null then
            v_object.put_null(p_key);
        elsif dbms_lob.getlength(p_text) = 0 then
            -- An empty text is not a missing one.
            v_object.put(p_key, json_element_t.parse('""'));
        else
            v_object.put(p_key, p_text);
        end if;
    end put_text;
begin
    for each_message in (
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               l.message_id, l.attempt, m.message_type, m.headers, m.body, m.body_binary,
               m.enqueued_at, m.last_error
        from rowq_leased l
        join rowq_message m
          on m.part_id = l.part_id
         and m.message_id = l.message_id
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
        order by l.part_id, l.claim_id, l.place
    ) loop
        v_object := json_object_t();
        v_object.put('claim_id', p_claim_id);
        v_object.put('message_id', each_message.message_id);
        v_object.put('attempt', each_message.attempt);
        put_text('message_type', each_message.message_type);
        put_text('body', each_message.body);
        put_text('body_binary', internal_to_base64(each_message.body_binary));
        put_text('enqueued_at', internal_iso_text(each_message.enqueued_at));
        put_text('lease_until', internal_iso_text(p_lease_until));
        put_text('last_error', each_message.last_error);

        -- Headers go in as the text they are: an object of JSON keeps numbers, and rounds them.
        if dbms_lob.getlength(v_text) > 1 then
            dbms_lob.append(v_text, ',');
        end if;
        dbms_lob.append(v_text, '{"headers":');
        dbms_lob.append(v_text, coalesce(each_message.headers, to_clob('null')));
        dbms_lob.append(v_text, ',');
        dbms_lob.append(v_text, substr(v_object.to_clob(), 2));
    end loop;
    dbms_lob.append(v_text, ']');
    return v_text;
end internal_messages_json;

function internal_microseconds(p_moment in timestamp)
return number
is
-- routine   internal_microseconds
-- version   1
-- purpose   A moment as microseconds since 1970; null stays null.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have a function for it
    v_since interval day(9) to second(6);
begin
    v_since := p_moment - timestamp '1970-01-01 00:00:00';
    return extract(day from v_since) * 86400000000
        + extract(hour from v_since) * 3600000000
        + extract(minute from v_since) * 60000000
        + round(extract(second from v_since) * 1000000);
end internal_microseconds;

function internal_moment(p_microseconds in number)
return timestamp
is
-- routine   internal_moment
-- version   1
-- purpose   The moment that is so many microseconds after the beginning of 1970; null stays null.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have a function for it
begin
    return timestamp '1970-01-01 00:00:00' + numtodsinterval(p_microseconds / 1000000, 'second');
end internal_moment;

procedure internal_move_floor(
    p_part_id in number,
    p_lane    in number,
    p_from    in number,
    p_to      in number
)
is
-- routine   internal_move_floor
-- version   1
-- purpose   Move the floor of a lane down, or up if it still is where the caller saw it.
-- promise   P13 P14
-- locks     the row of the lane, passed over when locked
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_row_id rowid;
    v_floor  rowq_lane.floor_seq%type;
    cursor lane_row is
        select l.rowid, l.floor_seq
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane = p_lane
        for update skip locked;
begin
    open lane_row;
    fetch lane_row into v_row_id, v_floor;
    close lane_row;
    if v_floor = p_from or p_to < v_floor then
        update rowq_lane l
        set l.floor_seq = p_to
        where l.rowid = v_row_id;
    end if;
end internal_move_floor;

function internal_new_message(
    p_now           in timestamp,
    p_place         in number,
    p_body          in clob,
    p_body_binary   in blob,
    p_message_type  in varchar2,
    p_headers       in clob,
    p_priority      in number,
    p_delay_seconds in number,
    p_run_at        in timestamp,
    p_dedup_key     in varchar2,
    p_max_attempts  in number
)
return t_new_message
is
-- routine   internal_new_message
-- version   1
-- purpose   A message as it will be stored, from arguments that are already checked.
-- promise   P05 P11
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of store
    v_new t_new_message;
begin
    v_new.body := p_body;
    v_new.body_binary := p_body_binary;
    v_new.message_type := p_message_type;
    v_new.headers := p_headers;
    v_new.lane := p_priority * 2 + 1;
    v_new.seq := internal_microseconds(p_now) + p_place;
    v_new.enqueued_at := p_now + numtodsinterval(p_place / 1000000, 'second');
    v_new.due_at := coalesce(p_run_at, p_now + numtodsinterval(p_delay_seconds, 'second'));
    if v_new.due_at <= p_now then
        v_new.due_at := null;
    end if;
    v_new.dedup_key := p_dedup_key;
    v_new.max_attempts := p_max_attempts;
    return v_new;
end internal_new_message;

procedure internal_note_error(
    p_part_id  in number,
    p_messages in t_messages,
    p_error    in clob
)
is
-- routine   internal_note_error
-- version   1
-- purpose   Keep why messages failed: the first 2000 characters.
-- promise   P10
-- locks     message rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   the last error stands beside the body, and not where the message waits
    -- A CLOB counts a character outside the basic plane as two, a varchar2 as one.
    v_error constant varchar2(32767) := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
begin
    if p_error is not null and v_error is null then
        -- An empty text is not a missing one.
        forall i in 1 .. p_messages.count
            update rowq_message m
            set m.last_error = empty_clob()
            where m.part_id = p_part_id
              and m.message_id = p_messages(i).message_id;
        return;
    end if;
    forall i in 1 .. p_messages.count
        update rowq_message m
        set m.last_error = v_error
        where m.part_id = p_part_id
          and m.message_id = p_messages(i).message_id;
end internal_note_error;

procedure internal_note_fault(p_part_id in number, p_fault in varchar2)
is
-- routine   internal_note_fault
-- version   1
-- purpose   Remember the last fault of a queue's archive for health; null forgets it.
-- promise   P19
-- locks     a row of meta
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines warn
    v_name constant rowq_meta.name%type := 'archive_fault.' || internal_number_text(p_part_id);
begin
    if p_fault is null then
        delete from rowq_meta m
        where m.name = v_name;
        return;
    end if;
    merge into rowq_meta m
    using (select v_name as name from dual) n on (m.name = n.name)
    when matched then update
        set m.value      = p_fault,
            m.changed_at = sys_extract_utc(systimestamp)
    when not matched then insert (name, value, changed_at)
        values (n.name, p_fault, sys_extract_utc(systimestamp));
end internal_note_fault;

procedure internal_note_listener(p_part_id in number, p_listened_until in timestamp)
is
-- routine   internal_note_listener
-- version   1
-- purpose   Note until when somebody listens at a queue; null when nobody does any more.
-- promise   none
-- locks     the queue row, passed over when locked
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own
    v_row_id rowid;
    cursor queue_row is
        select q.rowid
        from rowq_queue q
        where q.part_id = p_part_id
        for update skip locked;
begin
    open queue_row;
    fetch queue_row into v_row_id;
    close queue_row;
    if v_row_id is not null then
        update rowq_queue q
        set q.listened_until = p_listened_until
        where q.rowid = v_row_id;
    end if;
end internal_note_listener;

function internal_number_text(p_value in number)
return varchar2
is
-- routine   internal_number_text
-- version   1
-- purpose   A number as text, with a point whatever the session's NLS_NUMERIC_CHARACTERS are.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have no such setting
begin
    return coalesce(to_char(p_value, 'tm9', 'nls_numeric_characters=''.,'''), 'null');
end internal_number_text;

function internal_oldest_ready(p_part_id in number)
return timestamp
is
-- routine   internal_oldest_ready
-- version   1
-- purpose   When the oldest message at the head of a lane was enqueued, or null.
-- promise   P13
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_lanes  t_lanes := internal_open_lanes_of(p_part_id);
    v_id     rowq_ready.message_id%type;
    v_head   timestamp(6);
    v_oldest timestamp(6);
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    for i in 1 .. v_lanes.count loop
        v_id := null;
        open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_rows into v_id;
        close lane_rows;
        select min(m.enqueued_at) into v_head
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_id;
        v_oldest := least(coalesce(v_oldest, v_head), coalesce(v_head, v_oldest));
    end loop;
    return v_oldest;
end internal_oldest_ready;

procedure internal_open_lanes(p_part_id in number, p_lane in number)
is
-- routine   internal_open_lanes
-- version   1
-- purpose   Let dequeue look into a lane and its front companion.
-- promise   P02
-- locks     the rows of the two lanes, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_row_ids t_row_ids;
    -- Whoever holds the rows is opening them too; should that be rolled back, the next maintain
    -- finds the messages and opens the lanes.
    cursor closed_lanes is
        select l.rowid
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane in (p_lane, trunc(p_lane / 2) * 2)
          and l.is_open = 0
        for update skip locked;
begin
    open closed_lanes;
    fetch closed_lanes bulk collect into v_row_ids limit 2;
    close closed_lanes;
    forall i in 1 .. v_row_ids.count
        update rowq_lane l
        set l.is_open = 1
        where l.rowid = v_row_ids(i);
end internal_open_lanes;

procedure internal_open_lanes_for(p_part_id in number, p_new in t_new_messages)
is
-- routine   internal_open_lanes_for
-- version   1
-- purpose   Let dequeue look into the lanes of new messages.
-- promise   P02
-- locks     as internal_open_lanes, only for a lane that was never used
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of store
    -- The lane of the default priority is open from the start.
    c_default_lane constant pls_integer := 11;
    v_lanes t_lanes;
    v_open  t_numbers;
begin
    v_open(c_default_lane) := 1;
    for i in 1 .. p_new.count loop
        if not v_open.exists(p_new(i).lane) then
            if v_lanes.count = 0 then
                v_lanes := internal_open_lanes_of(p_part_id);
                for l in 1 .. v_lanes.count loop
                    v_open(v_lanes(l).lane) := 1;
                end loop;
            end if;
            if not v_open.exists(p_new(i).lane) then
                internal_open_lanes(p_part_id, p_new(i).lane);
                v_open(p_new(i).lane) := 1;
            end if;
        end if;
    end loop;
end internal_open_lanes_for;

function internal_open_lanes_of(p_part_id in number)
return t_lanes
is
-- routine   internal_open_lanes_of
-- version   1
-- purpose   The lanes that dequeue looks into, best first, with their floors.
-- promise   P05 P13
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines read them one by one
    v_lanes t_lanes;
begin
    select l.lane, l.floor_seq
    bulk collect into v_lanes
    from rowq_lane l
    where l.part_id = p_part_id
      and l.lane >= 0
      and l.is_open = 1
    order by l.part_id, l.lane;
    return v_lanes;
end internal_open_lanes_of;

function internal_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_other    in varchar2 default 'stale'
)
return rowq_lines
is
-- routine   internal_outcomes
-- version   1
-- purpose   One line a message: p_outcome for p_messages; p_other for what else was asked for.
-- promise   P08
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines return a query
    v_lines rowq_lines := rowq_lines();
    v_done  t_places;
begin
    if p_ids is null then
        v_lines.extend(p_messages.count);
        for i in 1 .. p_messages.count loop
            v_lines(i) := rowq_line(
                i, p_messages(i).message_id, p_messages(i).lane, p_messages(i).attempt,
                p_outcome, null
            );
        end loop;
        return v_lines;
    end if;

    for i in 1 .. p_messages.count loop
        v_done(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    v_lines.extend(p_ids.count);
    for i in 1 .. p_ids.count loop
        v_lines(i) := rowq_line(
            i, p_ids(i), null, null,
            case
                when v_done.exists(internal_number_text(p_ids(i))) then p_outcome
                else p_other
            end,
            null
        );
    end loop;
    return v_lines;
end internal_outcomes;

function internal_parse_message(
    p_message    in json_element_t,
    p_headers    in clob,
    p_now        in timestamp,
    p_place      in number,
    p_max_length in number,
    p_fault      out varchar2
)
return t_new_message
is
-- routine   internal_parse_message
-- version   1
-- purpose   Read and check one message of enqueue_batch; p_fault is what is wrong with it, or null.
-- promise   P15 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_keys constant varchar2(200 char) := '|body|body_base64|message_type|headers|priority'
        || '|delay_seconds|run_at|dedup_key|max_attempts|';
    v_object  json_object_t;
    v_keys    json_key_list;
    v_new     t_new_message;
    v_known   pls_integer := 0;
    v_body    clob;
    v_headers clob;
    v_bytes   blob;
    v_type    varchar2(32767);
    v_key     varchar2(32767);
    v_moment  varchar2(32767);
    v_numbers t_numbers;
    v_run_at  timestamp(6);

    -- Whether a key is there and not null; every question counts it as known.
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

    function text_of(p_key in varchar2)
    return varchar2
    is
    begin
        if not has(p_key) then
            return null;
        end if;
        if not v_object.get(p_key).is_string() then
            p_fault := p_key || ' must be a string';
            return null;
        end if;
        -- No text that may stand here is longer; 201 characters are as wrong as a million.
        return substr(internal_clob_part(v_object.get_clob(p_key), 1, 402), 1, 201);
    end text_of;

    function number_of(p_key in varchar2, p_default in number default null)
    return number
    is
    begin
        if not has(p_key) then
            return p_default;
        end if;
        if not v_object.get(p_key).is_number() then
            p_fault := p_key || ' must be a number';
            return null;
        end if;
        return v_object.get_number(p_key);
    end number_of;
begin
    p_fault := null;
    if not p_message.is_object() then
        p_fault := 'a message must be a JSON object';
        return v_new;
    end if;
    v_object := treat(p_message as json_object_t);

    if has('body') then
        -- A value that is no string is kept as JSON text. An empty text is not a missing one.
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
            p_fault := 'body_base64 is not base64';
        end if;
    end if;
    if has('headers') then
        -- p_headers are given where they were cut out of the message.
        v_headers := coalesce(p_headers, v_object.get('headers').to_clob());
    end if;
    v_type := text_of('message_type');
    v_key := text_of('dedup_key');
    if v_key is null and v_object.has('dedup_key') then
        if v_object.get('dedup_key').is_string() then
            p_fault := 'dedup_key must be 1 to 200 characters';
        end if;
    end if;
    v_moment := text_of('run_at');
    v_run_at := internal_parse_moment(v_moment);
    if v_moment is not null and v_run_at is null then
        p_fault := 'run_at is no moment: ' || substr(v_moment, 1, 40);
    end if;
    v_numbers(1) := number_of('priority', 5);
    v_numbers(2) := number_of('delay_seconds');
    v_numbers(3) := number_of('max_attempts');

    if v_known < v_object.get_size() then
        p_fault := 'unknown key';
        v_keys := v_object.get_keys();
        for i in 1 .. v_keys.count loop
            if instr(c_keys, '|' || v_keys(i) || '|') = 0 then
                p_fault := 'unknown key ' || substr(v_keys(i), 1, 60);
            end if;
        end loop;
    end if;
    p_fault := coalesce(
        p_fault,
        internal_message_fault(
            v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2), v_run_at, v_key,
            v_numbers(3)
        ),
        internal_body_fault(v_body, v_bytes, p_max_length)
    );
    if p_fault is null then
        v_new := internal_new_message(
            p_now, p_place, v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2),
            v_run_at, v_key, v_numbers(3)
        );
    end if;
    return v_new;
end internal_parse_message;

function internal_parse_messages(p_messages in clob, p_max_length in number)
return t_new_messages
is
-- routine   internal_parse_messages
-- version   1
-- purpose   Read and check the messages of enqueue_batch.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    c_fault constant varchar2(100 char) :=
        'messages must be a JSON array of at most 10000 objects';
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_rest    clob := p_messages;
    v_headers t_clobs;
    v_list    json_element_t;
    v_array   json_array_t;
    v_new     t_new_messages;
    v_fault   varchar2(32767);
begin
    if not internal_is_json(p_messages) then
        internal_refuse(c_fault);
    end if;
    -- An object of JSON would round a number of many digits, or with an exponent. A range of digits
    -- would follow the session's NLS_SORT.
    if regexp_like(p_messages, '[[:space:],:[]-?[0123456789.]+[eE]|[0123456789.]{38}') then
        internal_cut_headers(p_messages, v_headers, v_rest);
    end if;
    v_list := json_element_t.parse(v_rest);
    if not v_list.is_array() then
        internal_refuse(c_fault);
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        internal_refuse(c_fault);
    end if;

    for i in 1 .. v_array.get_size() loop
        v_new(i) := internal_parse_message(
            v_array.get(i - 1), case when v_headers.exists(i) then v_headers(i) end, v_now, i,
            p_max_length, v_fault
        );
        if v_fault is not null then
            internal_refuse(v_fault || ' (message ' || internal_number_text(i) || ')');
        end if;
    end loop;
    return v_new;
end internal_parse_messages;

function internal_parse_moment(p_text in varchar2)
return timestamp
is
-- routine   internal_parse_moment
-- version   1
-- purpose   Read a moment in ISO 8601, UTC without a zone; null when it is none.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_shape constant varchar2(200 char) :=
        '^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,6})?'
        || '(Z|[+-][0-9]{2}:?[0-9]{2})?$';
    v_zone    varchar2(10 char);
    v_minutes pls_integer := 0;
    v_moment  timestamp(6);
begin
    if p_text is null or not regexp_like(p_text, c_shape, 'c') then
        return null;
    end if;
    v_moment := to_timestamp(
        regexp_substr(p_text, c_shape, 1, 1, 'c', 1) || ' '
        || regexp_substr(p_text, c_shape, 1, 1, 'c', 2)
        || coalesce(regexp_substr(p_text, c_shape, 1, 1, 'c', 3), ':00')
        || coalesce(regexp_substr(p_text, c_shape, 1, 1, 'c', 4), '.0'),
        'yyyy-mm-dd hh24:mi:ss.ff6', 'nls_calendar=gregorian'
    );
    v_zone := regexp_substr(p_text, c_shape, 1, 1, 'c', 5);
    if length(v_zone) > 1 then
        v_minutes := to_number(substr(v_zone, 2, 2), '99') * 60
            + to_number(substr(v_zone, -2), '99');
        if substr(v_zone, 1, 1) = '-' then
            v_minutes := -v_minutes;
        end if;
    end if;
    return v_moment - numtodsinterval(v_minutes, 'minute');
exception
    when others then
        -- The thirtieth of February and such: out of range in one of a dozen ways (ORA-018xx).
        if sqlcode between -1899 and -1800 then
            return null;
        end if;
        raise;
end internal_parse_moment;

function internal_promote(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_promote
-- version   1
-- purpose   Move up to p_limit due messages to the tails of their lanes, earliest first.
-- promise   P11
-- locks     delayed rows, passing over locked ones; new ready rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) := internal_moment(internal_floor(p_part_id, -2));
    v_probe    rowq_delayed.message_id%type;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor due is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id;
    cursor due_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id
        for update skip locked;
begin
    -- Without a lock first, so that a look at nothing begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_locked limit p_limit;
    close due_rows;
    internal_drop_delayed(v_locked, v_messages);
    internal_to_ready(p_part_id, v_messages);
    return v_messages.count;
end internal_promote;

function internal_purge_archive(
    p_part_id in number,
    p_before  in timestamp,
    p_limit   in number
)
return number
is
-- routine   internal_purge_archive
-- version   1
-- purpose   Delete up to p_limit of a queue's archived messages that finished before p_before.
-- promise   P19
-- locks     archive rows, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_row_ids t_row_ids;
    cursor old_rows is
        select /*+ index_rs_asc(a rowq_archive_pk) no_batch_table_access_by_rowid(a) */ a.rowid
        from rowq_archive a
        where a.part_id = p_part_id
          and a.finished_at < p_before
        order by a.part_id, a.finished_at, a.message_id
        for update skip locked;
begin
    open old_rows;
    fetch old_rows bulk collect into v_row_ids limit p_limit;
    close old_rows;
    forall i in 1 .. v_row_ids.count
        delete from rowq_archive a
        where a.rowid = v_row_ids(i);
    return v_row_ids.count;
end internal_purge_archive;

function internal_purge_ready(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_purge_ready
-- version   1
-- purpose   Delete up to p_limit ready messages, lane by lane; null means all.
-- promise   P15
-- locks     ready rows, passing over locked ones; message and dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) no_batch_table_access_by_rowid(r) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
        order by r.part_id, r.lane, r.seq, r.message_id
        for update skip locked;
begin
    open ready_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch ready_rows bulk collect into v_locked limit v_step;
        exit when v_locked.count = 0;
        v_messages.delete;
        internal_drop_ready(v_locked, v_messages);
        internal_drop_rows(p_part_id, v_messages);
        v_removed := v_removed + v_messages.count;
    end loop;
    close ready_rows;
    return v_removed;
end internal_purge_ready;

function internal_purge_waiting(p_part_id in number, p_of_dead in boolean, p_limit in number)
return number
is
-- routine   internal_purge_waiting
-- version   1
-- purpose   Delete up to p_limit delayed messages, or dead ones; null means all.
-- promise   P15
-- locks     delayed or dead rows, passing over locked ones; message and dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor delayed_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.part_id = p_part_id
        order by d.part_id, d.due_at, d.message_id
        for update skip locked;
    cursor dead_rows is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_part_id
        order by d.part_id, d.message_id
        for update skip locked;
begin
    if p_of_dead then
        open dead_rows;
    else
        open delayed_rows;
    end if;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        v_messages.delete;
        if p_of_dead then
            fetch dead_rows bulk collect into v_locked limit v_step;
            exit when v_locked.count = 0;
            internal_drop_dead(v_locked, v_messages);
        else
            fetch delayed_rows bulk collect into v_locked limit v_step;
            exit when v_locked.count = 0;
            internal_drop_delayed(v_locked, v_messages);
        end if;
        internal_drop_rows(p_part_id, v_messages);
        v_removed := v_removed + v_messages.count;
    end loop;
    if p_of_dead then
        close dead_rows;
    else
        close delayed_rows;
    end if;
    return v_removed;
end internal_purge_waiting;

procedure internal_reap(
    p_queue  in t_queue,
    p_limit  in number,
    p_reaped out number,
    p_died   out number
)
is
-- routine   internal_reap
-- version   1
-- purpose   Take messages back from expired claims to the front of their lanes, until p_limit is passed.
-- promise   P03 P09
-- locks     expired claim rows, passing over locked ones; message rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_floor constant number := internal_floor(p_queue.part_id, -1);
    v_row_id      rowid;
    v_claim_id    rowq_claim.claim_id%type;
    v_worker_name rowq_claim.worker_name%type;
    v_messages    t_messages;
    v_alive       t_messages;
    v_dead        t_messages;
    v_error       varchar2(300 char);
    -- Fetched one by one, so that a claim is locked only when it is taken. A heartbeat or a finish
    -- that came first makes it fail the condition, or be passed over.
    cursor expired is
        select /*+ index_rs_asc(c rowq_claim_pk) no_batch_table_access_by_rowid(c) */
               c.rowid, c.claim_id, c.worker_name
        from rowq_claim c
        where c.part_id = p_queue.part_id
          and c.claim_id >= v_floor
          and c.lease_until <= v_now
        order by c.part_id, c.claim_id
        for update skip locked;
begin
    p_reaped := 0;
    p_died := 0;
    open expired;
    while p_reaped + p_died < p_limit loop
        fetch expired into v_row_id, v_claim_id, v_worker_name;
        exit when expired%notfound;
        v_messages := internal_held(p_queue.part_id, v_claim_id);
        delete from rowq_leased l
        where l.part_id = p_queue.part_id
          and l.claim_id = v_claim_id;
        delete from rowq_claim c
        where c.rowid = v_row_id;

        internal_split(p_queue, v_messages, v_alive, v_dead);
        v_error := 'lease expired';
        if v_worker_name is not null then
            v_error := v_error || ': ' || v_worker_name;
        end if;
        internal_to_front(v_alive, 0);
        internal_to_ready(p_queue.part_id, v_alive);
        internal_note_error(p_queue.part_id, v_alive, v_error);
        internal_to_dead(p_queue.part_id, v_dead, v_error);
        p_reaped := p_reaped + v_alive.count;
        p_died := p_died + v_dead.count;
    end loop;
    close expired;
end internal_reap;

procedure internal_refuse(p_fault in varchar2)
is
-- routine   internal_refuse
-- version   1
-- purpose   The error for an argument.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing elsewhere: other engines raise with an expression
begin
    raise_application_error(-20711, 'RQ711 invalid_argument: ' || substr(p_fault, 1, 400));
end internal_refuse;

procedure internal_refuse_claim(p_claim_id in number)
is
-- routine   internal_refuse_claim
-- version   1
-- purpose   The error for a claim that is gone.
-- promise   P08
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ721
-- differs   nothing
begin
    raise_application_error(
        -20721,
        'RQ721 stale_claim: claim ' || internal_number_text(p_claim_id)
        || ' holds nothing any more'
    );
end internal_refuse_claim;

procedure internal_refuse_full(p_part_id in number, p_queue_name in varchar2)
is
-- routine   internal_refuse_full
-- version   1
-- purpose   The error for a queue that still has messages or an archive.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ704
-- differs   nothing elsewhere: part of drop_queue
    v_id number;
    cursor kept is
        select m.message_id
        from rowq_message m
        where m.part_id = p_part_id
        union all
        select a.message_id
        from rowq_archive a
        where a.part_id = p_part_id;
begin
    open kept;
    fetch kept into v_id;
    close kept;
    if v_id is not null then
        raise_application_error(
            -20704,
            'RQ704 queue_not_empty: ' || p_queue_name
            || ' has messages or an archive; force drops them too'
        );
    end if;
end internal_refuse_full;

procedure internal_refuse_queue(p_queue_name in varchar2)
is
-- routine   internal_refuse_queue
-- version   1
-- purpose   The error for a queue name that is missing or unknown.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
begin
    if p_queue_name is null then
        internal_refuse('queue_name is missing');
    end if;
    raise_application_error(-20701, 'RQ701 queue_not_found: ' || substr(p_queue_name, 1, 100));
end internal_refuse_queue;

procedure internal_remove_queue(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_force      in boolean
)
is
-- routine   internal_remove_queue
-- version   1
-- purpose   Remove an empty queue, or with p_force a full one, when for a moment nobody writes.
-- promise   P02 P15
-- locks     the tables against writers, waiting for a second at most; all rows of the queue
-- commits   never; the caller owns the transaction
-- errors    RQ704 RQ705
-- differs   nothing: as on PostgreSQL, tables are locked, as a row cannot be locked in share mode
    e_busy exception;
    e_timeout exception;
    e_deadlock exception;
    pragma exception_init(e_busy, -54);
    pragma exception_init(e_timeout, -30006);
    pragma exception_init(e_deadlock, -60);
begin
    -- An enqueue that has not committed must not be overlooked, and no delete below may wait. In
    -- the order in which workers lock.
    begin
        lock table rowq_claim, rowq_leased, rowq_ready, rowq_delayed, rowq_message, rowq_dead,
            rowq_finished, rowq_archive, rowq_lane, rowq_queue
            in share row exclusive mode wait 1;
    exception
        when e_busy or e_timeout or e_deadlock then
            raise_application_error(
                -20705, 'RQ705 queue_busy: open transactions hold the tables; try again'
            );
    end;
    if not p_force then
        internal_refuse_full(p_part_id, p_queue_name);
    end if;
    internal_empty_queue(p_part_id);
    internal_note_fault(p_part_id, null);
end internal_remove_queue;

function internal_require_queue(p_queue_name in varchar2)
return t_queue
is
-- routine   internal_require_queue
-- version   1
-- purpose   The settings of a queue that must exist.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_key   raw(400);
    v_queue t_queue;
    cursor named is
        select q.part_id, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
               q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, q.paused_at, q.listened_until
        from rowq_queue q
        where q.queue_key = v_key;
begin
    if length(p_queue_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_queue_name);
        open named;
        fetch named into v_queue;
        close named;
    end if;
    if v_queue.part_id is null then
        internal_refuse_queue(p_queue_name);
    end if;
    return v_queue;
end internal_require_queue;

procedure internal_rescan_floors(p_part_id in number)
is
-- routine   internal_rescan_floors
-- version   1
-- purpose   Look for the first live row of every lane from its very start, and put the floors right.
-- promise   P13 P14
-- locks     rows of lanes, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only maintain moves floors: dead rows cost nothing here, emptied index blocks little
    c_duty constant number := 50;
    -- In microseconds.
    c_short_walk constant number := 300;
    c_long_walk constant number := 20000;
    c_longest_pause constant number := 3600000000;
    c_not_yet_committed constant number := 500000;
    type t_due_lane is record (
        lane      rowq_lane.lane%type,
        floor_seq rowq_lane.floor_seq%type,
        is_open   rowq_lane.is_open%type
    );
    type t_due_lanes is table of t_due_lane index by pls_integer;
    v_now      constant timestamp(6) := sys_extract_utc(systimestamp);
    v_lanes    t_due_lanes;
    v_started  timestamp(6);
    v_first    number;
    v_latest   number;
    v_worth_it number;
    v_took     number;
    v_row_id   rowid;
    cursor lane_row(p_lane in number) is
        select l.rowid
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane = p_lane
        for update skip locked;
begin
    select l.lane, l.floor_seq, l.is_open
    bulk collect into v_lanes
    from rowq_lane l
    where l.part_id = p_part_id
      and l.check_after <= v_now
    order by l.part_id, l.lane;

    for i in 1 .. v_lanes.count loop
        v_started := sys_extract_utc(systimestamp);
        v_first := internal_first_key(p_part_id, v_lanes(i).lane, 0);
        v_took := internal_microseconds(sys_extract_utc(systimestamp))
            - internal_microseconds(v_started);

        if v_lanes(i).lane >= 0 and v_first is not null and v_lanes(i).is_open = 0 then
            -- Its first producer was passed over when the lane was opened, or rolled back.
            internal_open_lanes(p_part_id, v_lanes(i).lane);
        end if;
        if v_lanes(i).lane in (-1, -3) then
            v_first := coalesce(v_first, v_lanes(i).floor_seq);
            v_worth_it := 400;
        else
            -- What is not committed yet may lie anywhere up to now.
            v_latest := internal_microseconds(v_started) - c_not_yet_committed;
            v_first := least(coalesce(v_first, v_latest), v_latest);
            v_worth_it := 1000000;
        end if;
        if v_took > c_short_walk then
            v_worth_it := 0;
        end if;
        if v_first < v_lanes(i).floor_seq
           or (
               v_first > v_lanes(i).floor_seq + v_worth_it
               and (v_lanes(i).is_open = 1 or v_lanes(i).lane < 0)
           ) then
            internal_move_floor(p_part_id, v_lanes(i).lane, v_lanes(i).floor_seq, v_first);
        end if;

        -- A walk over many emptied blocks is repeated only after fifty times its own length.
        if v_took > c_long_walk then
            v_row_id := null;
            open lane_row(v_lanes(i).lane);
            fetch lane_row into v_row_id;
            close lane_row;
            update rowq_lane l
            set l.check_after = sys_extract_utc(systimestamp)
                + numtodsinterval(least(v_took * c_duty, c_longest_pause) / 1000000, 'second')
            where l.rowid = v_row_id;
        end if;
    end loop;
end internal_rescan_floors;

function internal_retries(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_alive    in t_messages,
    p_due_at   in t_moments
)
return rowq_lines
is
-- routine   internal_retries
-- version   1
-- purpose   The lines of retry_later: retrying with the moment it is due, dead, or stale.
-- promise   P08 P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of retry_later
    v_lines rowq_lines := internal_outcomes(p_ids, p_messages, 'retrying');
    v_alive t_places;
    v_text  varchar2(50 char);
begin
    for i in 1 .. p_alive.count loop
        v_alive(internal_number_text(p_alive(i).message_id)) := i;
    end loop;
    for i in 1 .. v_lines.count loop
        if v_lines(i).outcome = 'retrying' then
            v_text := internal_number_text(v_lines(i).message_id);
            if v_alive.exists(v_text) then
                v_lines(i).due_at := p_due_at(v_alive(v_text));
            else
                v_lines(i).outcome := 'dead';
            end if;
        end if;
    end loop;
    return v_lines;
end internal_retries;

procedure internal_revive(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_locked   in t_locked_rows,
    p_messages out nocopy t_messages,
    p_lines    out nocopy rowq_lines
)
is
-- routine   internal_revive
-- version   1
-- purpose   Take dead messages that are locked out of their place; a key that a newer message holds keeps one dead.
-- promise   P12
-- locks     dead rows, which the caller holds already; new dedup rows, in key order
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of reset
    v_found  t_messages;
    v_wanted rowq_ids;
    v_ids    t_numbers;
    v_keys   t_texts;
    v_order  t_places;
    v_taken  t_places;
    v_at     varchar2(4000 char);
    v_key    raw(800);
    v_free   t_locked_rows;
begin
    for i in 1 .. p_locked.count loop
        v_found(i).message_id := p_locked(i).message_id;
    end loop;
    v_wanted := internal_ids_of(v_found);
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.dedup_key
    bulk collect into v_ids, v_keys
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.dedup_key is not null;
    for i in 1 .. v_ids.count loop
        v_order(internal_key_place(v_keys(i), v_ids(i))) := i;
    end loop;

    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(v_keys(v_order(v_at)));
        begin
            insert into rowq_dedup (part_id, dedup_key, message_id)
            values (p_part_id, v_key, v_ids(v_order(v_at)));
        exception
            when dup_val_on_index then
                v_taken(internal_number_text(v_ids(v_order(v_at)))) := 1;
        end;
        v_at := v_order.next(v_at);
    end loop;

    for i in 1 .. p_locked.count loop
        if not v_taken.exists(internal_number_text(p_locked(i).message_id)) then
            v_free(v_free.count + 1) := p_locked(i);
        end if;
    end loop;
    p_messages.delete;
    internal_drop_dead(v_free, p_messages);
    if p_ids is not null then
        v_wanted := p_ids;
    end if;
    p_lines := internal_outcomes(v_wanted, p_messages, 'reset', 'not_found');
    for i in 1 .. p_lines.count loop
        if v_taken.exists(internal_number_text(p_lines(i).message_id)) then
            p_lines(i).outcome := 'duplicate';
        end if;
    end loop;
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2 + 1;
        p_messages(i).attempt := 0;
    end loop;
end internal_revive;

procedure internal_ring(p_part_id in number, p_listened_until in timestamp)
is
-- routine   internal_ring
-- version   1
-- purpose   Ring for who waits at a queue, where doorbell.sql was run and somebody listens.
-- promise   none
-- locks     none that another could wait for
-- commits   never; the ring is heard when the caller's transaction commits
-- errors    none
-- differs   this engine's own
    -- The user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
begin
    if p_listened_until is null or p_listened_until < sys_extract_utc(systimestamp) then
        return;
    end if;
    savepoint rowq_ring;
    -- By text, as the package is there only by choice.
    execute immediate 'begin rowq_doorbell.ring(:1); end;' using p_part_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- A message counts for more than its ring: who listens looks once a second anyway.
        rollback to savepoint rowq_ring;
end internal_ring;

function internal_seconds_since(p_moment in timestamp, p_now in timestamp)
return number
is
-- routine   internal_seconds_since
-- version   1
-- purpose   Seconds from a moment to p_now; null stays null.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have a function for it
begin
    return (internal_microseconds(p_now) - internal_microseconds(p_moment)) / 1000000;
end internal_seconds_since;

procedure internal_split(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_alive    out nocopy t_messages,
    p_dead     out nocopy t_messages
)
is
-- routine   internal_split
-- version   1
-- purpose   Divide messages into those with an attempt left and those without.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    t_numbers;
    v_limits t_numbers;
    v_own    t_places;
    v_limit  number;
begin
    p_alive.delete;
    p_dead.delete;
    -- Few messages have a limit of their own.
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.max_attempts
    bulk collect into v_ids, v_limits
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_queue.part_id
     and m.message_id = a.column_value
    where m.max_attempts is not null;
    for i in 1 .. v_ids.count loop
        v_own(internal_number_text(v_ids(i))) := v_limits(i);
    end loop;

    for i in 1 .. p_messages.count loop
        v_limit := case
            when v_own.exists(internal_number_text(p_messages(i).message_id))
                then v_own(internal_number_text(p_messages(i).message_id))
            else p_queue.max_attempts
        end;
        if p_messages(i).attempt < v_limit then
            p_alive(p_alive.count + 1) := p_messages(i);
        else
            p_dead(p_dead.count + 1) := p_messages(i);
        end if;
    end loop;
end internal_split;

procedure internal_stop_leading(p_lock in number)
is
-- routine   internal_stop_leading
-- version   1
-- purpose   Let another waiter of the queue lead.
-- promise   none
-- locks     gives back the session's lock p_lock
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own
    v_result number;
begin
    execute immediate
        'begin :1 := sys.dbms_lock.release(id => :2); end;'
        using out v_result, in p_lock;
end internal_stop_leading;

procedure internal_store(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_new        in out nocopy t_new_messages
)
is
-- routine   internal_store
-- version   1
-- purpose   Keep messages, already checked, and let them wait where they belong.
-- promise   P01 P02 P05 P11 P12 P20
-- locks     new rows only; with dedup keys, waits for open enqueues of the same keys, in key order
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    -- Parent key not found: the queue was dropped while this waited for it.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    v_fresh t_numbers;
    v_ready t_numbers;
    v_later t_numbers;
begin
    internal_hold_keys(p_part_id, p_new);
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' then
            v_fresh(i) := i;
            if p_new(i).due_at is null then
                v_ready(i) := i;
            else
                v_later(i) := i;
            end if;
        end if;
    end loop;
    internal_open_lanes_for(p_part_id, p_new);

    forall i in indices of v_fresh
        insert into rowq_message (
            part_id, message_id, max_attempts, lane, seq, enqueued_at, due_at, message_type,
            dedup_key, headers, body, body_binary
        )
        values (
            p_part_id, p_new(i).message_id, p_new(i).max_attempts, p_new(i).lane, p_new(i).seq,
            p_new(i).enqueued_at, p_new(i).due_at, p_new(i).message_type,
            p_new(i).dedup_key, p_new(i).headers, p_new(i).body, p_new(i).body_binary
        );
    forall i in indices of v_ready
        insert into rowq_ready (part_id, lane, seq, message_id)
        values (p_part_id, p_new(i).lane, p_new(i).seq, p_new(i).message_id);
    forall i in indices of v_later
        insert into rowq_delayed (part_id, due_at, message_id, lane)
        values (p_part_id, p_new(i).due_at, p_new(i).message_id, p_new(i).lane);
exception
    when e_no_queue then
        internal_refuse_queue(p_queue_name);
end internal_store;

function internal_take(p_part_id in number, p_claim_id in number, p_ids in rowq_ids)
return t_messages
is
-- routine   internal_take
-- version   1
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them.
-- promise   P08
-- locks     the claim row, first of all
-- commits   never; the caller owns the transaction
-- errors    RQ721
-- differs   nothing
    v_row_id rowid;
    v_held   t_messages;
    v_taken  t_messages;
    v_wanted t_places;
    cursor claim_row is
        select c.rowid
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id
        for update;
begin
    -- Waits for who is finishing the same claim; then it is there, smaller, or gone.
    open claim_row;
    fetch claim_row into v_row_id;
    close claim_row;
    if v_row_id is null then
        if p_ids is null then
            internal_refuse_claim(p_claim_id);
        end if;
        return v_taken;
    end if;

    v_held := internal_held(p_part_id, p_claim_id);
    if p_ids is null then
        v_taken := v_held;
    else
        for i in 1 .. p_ids.count loop
            v_wanted(internal_number_text(p_ids(i))) := i;
        end loop;
        for i in 1 .. v_held.count loop
            if v_wanted.exists(internal_number_text(v_held(i).message_id)) then
                v_taken(v_taken.count + 1) := v_held(i);
            end if;
        end loop;
    end if;

    forall i in 1 .. v_taken.count
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
          and l.place = v_taken(i).seq;
    if v_taken.count = v_held.count then
        delete from rowq_claim c
        where c.rowid = v_row_id;
    end if;
    return v_taken;
end internal_take;

procedure internal_take_ready(
    p_part_id  in number,
    p_limit    in number,
    p_messages out nocopy t_messages
)
is
-- routine   internal_take_ready
-- version   1
-- purpose   Take up to p_limit messages from the lanes, best lane first.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   a cursor bounds the batch: rownum would count before the skip, fetch first is refused
    v_lanes  t_lanes := internal_open_lanes_of(p_part_id);
    v_probe  rowq_ready.message_id%type;
    v_left   pls_integer;
    v_locked t_locked_rows;
    cursor lane_head(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
    -- The order is the index's, so nothing is sorted and a row is locked when it is fetched and not
    -- before: one fetch of n rows locks n rows. Batched table access would break that order.
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) no_batch_table_access_by_rowid(r) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id
        for update skip locked;
begin
    p_messages.delete;
    for i in 1 .. v_lanes.count loop
        exit when p_messages.count >= p_limit;
        -- Without a lock first, so that a look at nothing begins no transaction.
        v_probe := null;
        open lane_head(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_head into v_probe;
        close lane_head;
        if v_probe is not null then
            v_left := p_limit - p_messages.count;
            open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
            fetch lane_rows bulk collect into v_locked limit v_left;
            close lane_rows;
            internal_drop_ready(v_locked, p_messages);
        end if;
    end loop;

    -- From here on seq is the place in the claim.
    for i in 1 .. p_messages.count loop
        p_messages(i).attempt := p_messages(i).attempt + 1;
        p_messages(i).seq := i;
    end loop;
end internal_take_ready;

function internal_text_length(p_text in clob)
return number
is
-- routine   internal_text_length
-- version   1
-- purpose   How many characters a text has.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: dbms_lob.getlength counts an emoji as two
    v_part   varchar2(32767);
    v_place  number := 1;
    v_length number := 0;
begin
    loop
        v_part := internal_clob_part(p_text, v_place, 8000);
        exit when v_part is null;
        v_length := v_length + length(v_part);
        v_place := v_place + length2(v_part);
    end loop;
    return v_length;
end internal_text_length;

function internal_to_base64(p_bytes in blob)
return clob
is
-- routine   internal_to_base64
-- version   1
-- purpose   Bytes as base64 in one line; null stays null.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have a function for it
    -- A whole number of groups of three, so that only the last chunk is padded.
    c_step constant pls_integer := 12000;
    v_length pls_integer := dbms_lob.getlength(p_bytes);
    v_place  pls_integer := 1;
    v_chunk  varchar2(32767);
    v_text   clob;
begin
    if p_bytes is null then
        return null;
    end if;
    dbms_lob.createtemporary(v_text, true, dbms_lob.call);
    while v_place <= v_length loop
        v_chunk := utl_raw.cast_to_varchar2(
            utl_encode.base64_encode(dbms_lob.substr(p_bytes, c_step, v_place))
        );
        v_chunk := replace(replace(v_chunk, chr(13)), chr(10));
        dbms_lob.writeappend(v_text, length(v_chunk), v_chunk);
        v_place := v_place + c_step;
    end loop;
    return v_text;
end internal_to_base64;

procedure internal_to_dead(p_part_id in number, p_messages in t_messages, p_error in clob)
is
-- routine   internal_to_dead
-- version   1
-- purpose   Keep messages as dead with the last error; their dedup keys are free again.
-- promise   P10 P12
-- locks     new dead rows; message rows; dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    if p_messages.count = 0 then
        return;
    end if;
    forall i in 1 .. p_messages.count
        insert into rowq_dead (part_id, message_id, lane, attempt, died_at)
        values (
            p_part_id, p_messages(i).message_id, p_messages(i).lane, p_messages(i).attempt, v_now
        );
    internal_note_error(p_part_id, p_messages, p_error);
    internal_free_keys(p_part_id, p_messages);
end internal_to_dead;

procedure internal_to_delayed(
    p_part_id  in number,
    p_messages in t_messages,
    p_due_at   in t_moments,
    p_error    in clob
)
is
-- routine   internal_to_delayed
-- version   1
-- purpose   Let messages wait for their time; those that are due are ready at once.
-- promise   P10 P11
-- locks     message rows; new delayed or ready rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_later   t_messages;
    v_moments t_moments;
    v_due     t_messages;
    v_message t_message;
begin
    internal_note_error(p_part_id, p_messages, p_error);
    for i in 1 .. p_messages.count loop
        v_message := p_messages(i);
        v_message.lane := trunc(v_message.lane / 2) * 2 + 1;
        if p_due_at(i) > v_now then
            v_later(v_later.count + 1) := v_message;
            v_moments(v_later.count) := p_due_at(i);
        else
            v_due(v_due.count + 1) := v_message;
        end if;
    end loop;

    forall i in 1 .. v_later.count
        insert into rowq_delayed (part_id, due_at, message_id, lane, attempt)
        values (
            p_part_id, v_moments(i), v_later(i).message_id, v_later(i).lane, v_later(i).attempt
        );
    forall i in 1 .. v_later.count
        update rowq_message m
        set m.due_at = v_moments(i)
        where m.part_id = p_part_id
          and m.message_id = v_later(i).message_id;
    internal_to_ready(p_part_id, v_due);
end internal_to_delayed;

procedure internal_to_front(p_messages in out nocopy t_messages, p_spent in number)
is
-- routine   internal_to_front
-- version   1
-- purpose   Messages as they go to the front of their priority, p_spent attempts fewer.
-- promise   P09
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
begin
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2;
        p_messages(i).attempt := p_messages(i).attempt - p_spent;
    end loop;
end internal_to_front;

procedure internal_to_ready(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_to_ready
-- version   1
-- purpose   Append messages to lanes, in their order, under new places.
-- promise   P02 P14
-- locks     new ready rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_seq   constant number := internal_microseconds(sys_extract_utc(systimestamp));
    v_places t_numbers;
begin
    for i in 1 .. p_messages.count loop
        v_places(i) := v_seq + i;
    end loop;
    forall i in 1 .. p_messages.count
        insert into rowq_ready (part_id, lane, seq, message_id, attempt)
        values (
            p_part_id, p_messages(i).lane, v_places(i), p_messages(i).message_id,
            p_messages(i).attempt
        );
end internal_to_ready;

function internal_wait_lock(p_part_id in number)
return number
is
-- routine   internal_wait_lock
-- version   1
-- purpose   The number of the lock by which waiters of a queue elect their leader; 0 where the owner may not use dbms_lock.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own: the server has numbers and no names for locks that need no row
    v_count pls_integer;
begin
    -- Looked up rather than tried: a statement that fails to parse is parsed anew each time. Roles
    -- do not count in stored code, and "execute any procedure" leaves out what belongs to SYS.
    select count(*) into v_count
    from all_tab_privs p
    where p.table_schema = 'SYS'
      and p.table_name = 'DBMS_LOCK'
      and p.privilege = 'EXECUTE'
      and p.grantee in (sys_context('userenv', 'current_user'), 'PUBLIC');
    if v_count = 0 then
        return 0;
    end if;
    -- The numbers up to 1073741823 are for all applications of the database. One that happens to
    -- use the same delays waiters by a second at most.
    return dbms_utility.get_hash_value(
        sys_context('userenv', 'current_user') || '.rowq.wait.' || internal_number_text(p_part_id),
        1, 1073741823
    );
end internal_wait_lock;

function internal_withdraw(p_part_id in number, p_ids in rowq_ids)
return t_messages
is
-- routine   internal_withdraw
-- version   1
-- purpose   Take messages out of wherever they wait; those that a worker holds stay.
-- promise   P03
-- locks     delayed, ready and dead rows, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_most constant pls_integer := 10000;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor dead_rows is
        select d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_part_id
          and d.message_id in (select a.column_value from table(p_ids) a)
        for update skip locked;
    -- message.due_at is the last place in delayed.
    cursor delayed_rows is
        select d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where (d.part_id, d.due_at, d.message_id) in (
            select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */
                   m.part_id, m.due_at, m.message_id
            from table(p_ids) a
            join rowq_message m
              on m.part_id = p_part_id
             and m.message_id = a.column_value
        )
        for update skip locked;
    -- A message that was never given back is at its first place; the others that have a body may
    -- wait anywhere among the ready ones.
    cursor first_places is
        select r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where (r.part_id, r.lane, r.seq, r.message_id) in (
            select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */
                   m.part_id, m.lane, m.seq, m.message_id
            from table(p_ids) a
            join rowq_message m
              on m.part_id = p_part_id
             and m.message_id = a.column_value
        )
        for update skip locked;
    cursor other_places is
        select r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.message_id in (select a.column_value from table(p_ids) a)
        for update skip locked;
begin
    open dead_rows;
    fetch dead_rows bulk collect into v_locked limit c_most;
    close dead_rows;
    internal_drop_dead(v_locked, v_messages);

    open delayed_rows;
    fetch delayed_rows bulk collect into v_locked limit c_most;
    close delayed_rows;
    internal_drop_delayed(v_locked, v_messages);

    open first_places;
    fetch first_places bulk collect into v_locked limit c_most;
    close first_places;
    internal_drop_ready(v_locked, v_messages);

    if v_messages.count < p_ids.count then
        open other_places;
        fetch other_places bulk collect into v_locked limit c_most;
        close other_places;
        internal_drop_ready(v_locked, v_messages);
    end if;
    return v_messages;
end internal_withdraw;

function ids(p_ids in rowq_ids)
return clob
is
-- routine   ids
-- version   1
-- purpose   A list of ids as the JSON array that routines take: for callers in PL/SQL.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own: elsewhere a caller has a list or writes JSON
    v_array json_array_t := json_array_t();
begin
    if p_ids is null then
        return null;
    end if;
    for i in 1 .. p_ids.count loop
        v_array.append(p_ids(i));
    end loop;
    return v_array.to_clob();
end ids;

procedure alter_queue(
    p_queue_name           in varchar2,
    p_lease_seconds        in number default null,
    p_max_attempts         in number default null,
    p_backoff_base_seconds in number default null,
    p_backoff_factor       in number default null,
    p_backoff_cap_seconds  in number default null,
    p_backoff_jitter       in number default null,
    p_archive_days         in number default null,
    p_max_body_length      in number default null,
    p_rows                 out sys_refcursor
)
is
-- routine   alter_queue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting as it is.
-- promise   P15
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length
    );
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
    set q.lease_seconds        = coalesce(p_lease_seconds, q.lease_seconds),
        q.max_attempts         = coalesce(p_max_attempts, q.max_attempts),
        q.backoff_base_seconds = coalesce(p_backoff_base_seconds, q.backoff_base_seconds),
        q.backoff_factor       = coalesce(p_backoff_factor, q.backoff_factor),
        q.backoff_cap_seconds  = coalesce(p_backoff_cap_seconds, q.backoff_cap_seconds),
        q.backoff_jitter       = coalesce(p_backoff_jitter, q.backoff_jitter),
        q.archive_days         = coalesce(p_archive_days, q.archive_days),
        q.max_body_length      = coalesce(p_max_body_length, q.max_body_length)
    where q.part_id = v_queue.part_id;
    if sql%rowcount = 0 then
        -- Dropped while this waited for it.
        internal_refuse_queue(p_queue_name);
    end if;

    open p_rows for
        select p_queue_name as queue_name, 'altered' as outcome
        from dual;
end alter_queue;

procedure archive(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   archive
-- version   1
-- purpose   Move finished messages of a queue with archive_days above 0 to the archive.
-- promise   P19
-- locks     finished rows, passing over locked ones; message rows; new archive rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue    t_queue;
    v_archived pls_integer;
begin
    savepoint rowq_call;
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    v_archived := internal_archive(v_queue.part_id, p_batch_size);

    open p_rows for
        select v_archived as archived
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end archive;

procedure cancel(
    p_queue_name  in varchar2,
    p_message_ids in clob,
    p_rows        out sys_refcursor
)
is
-- routine   cancel
-- version   1
-- purpose   Withdraw messages that no worker holds, dead ones too.
-- promise   P15
-- locks     delayed, ready, dead rows, passing over locked ones; message and dedup rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
    v_queue    t_queue;
    v_ids      rowq_ids;
    v_messages t_messages;
    v_lines    rowq_lines;
begin
    savepoint rowq_call;
    if p_message_ids is null then
        internal_refuse('message_ids is missing');
    end if;
    v_ids := internal_ids_given(p_message_ids);
    v_queue := internal_require_queue(p_queue_name);

    v_messages := internal_withdraw(v_queue.part_id, v_ids);
    internal_finish(v_queue.part_id, v_queue.archive_days, v_messages, 'cancelled');
    v_lines := internal_outcomes(v_ids, v_messages, 'cancelled', 'not_found');
    internal_mark_leased(v_queue.part_id, v_lines);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end cancel;

procedure complete(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_rows        out sys_refcursor
)
is
-- routine   complete
-- version   1
-- purpose   Finish messages: they are gone, or in the archive, and never delivered again.
-- promise   P04 P08
-- locks     the claim row; then message and dedup rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue    t_queue;
    v_ids      rowq_ids;
    v_messages t_messages;
    v_lines    rowq_lines;
begin
    savepoint rowq_call;
    v_ids := internal_ids_given(p_message_ids);
    internal_check_claim(p_claim_id);
    v_queue := internal_require_queue(p_queue_name);

    v_messages := internal_take(v_queue.part_id, p_claim_id, v_ids);
    internal_finish(v_queue.part_id, v_queue.archive_days, v_messages, 'completed');
    v_lines := internal_outcomes(v_ids, v_messages, 'completed');

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end complete;

procedure create_queue(
    p_queue_name           in varchar2,
    p_lease_seconds        in number default null,
    p_max_attempts         in number default null,
    p_backoff_base_seconds in number default null,
    p_backoff_factor       in number default null,
    p_backoff_cap_seconds  in number default null,
    p_backoff_jitter       in number default null,
    p_archive_days         in number default null,
    p_max_body_length      in number default null,
    p_rows                 out sys_refcursor
)
is
-- routine   create_queue
-- version   1
-- purpose   Create a queue; an existing queue of that name is left as it is.
-- promise   P15
-- locks     the new queue row and the rows of its lanes; waits for who is creating the same queue
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    v_key     raw(400);
    v_part_id rowq_queue.part_id%type;
    v_outcome varchar2(20 char) := 'exists';
begin
    savepoint rowq_call;
    internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length
    );
    v_key := utl_raw.cast_to_raw(p_queue_name);

    -- Asked first: a collision uses up a number each time.
    select max(q.part_id) into v_part_id
    from rowq_queue q
    where q.queue_key = v_key;
    if v_part_id is null then
        v_part_id := rowq_part_seq.nextval;
        begin
            insert into rowq_queue (
                part_id, queue_name, queue_key, lease_seconds, max_attempts,
                backoff_base_seconds, backoff_factor, backoff_cap_seconds, backoff_jitter,
                archive_days, max_body_length, created_at
            )
            values (
                v_part_id, p_queue_name, v_key, coalesce(p_lease_seconds, 30),
                coalesce(p_max_attempts, 10), coalesce(p_backoff_base_seconds, 5),
                coalesce(p_backoff_factor, 2), coalesce(p_backoff_cap_seconds, 3600),
                coalesce(p_backoff_jitter, 0.2), coalesce(p_archive_days, 0),
                coalesce(p_max_body_length, 1048576), sys_extract_utc(systimestamp)
            );
            v_outcome := 'created';
        exception
            when dup_val_on_index then
                -- Another session was faster; or a number was given twice, and there is no queue.
                select max(q.part_id) into v_part_id
                from rowq_queue q
                where q.queue_key = v_key;
                if v_part_id is null then
                    raise;
                end if;
        end;
        if v_outcome = 'created' then
            internal_add_lanes(v_part_id);
        end if;
    end if;

    open p_rows for
        select p_queue_name as queue_name, v_outcome as outcome
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end create_queue;

procedure dequeue_fast(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_rows          out sys_refcursor
)
is
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
-- promise   P02 P03 P05 P06 P07 P13 P18
-- locks     ready rows, passing over locked ones; the new claim row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_part_id     rowq_queue.part_id%type;
    v_claim_id    rowq_claim.claim_id%type;
    v_lease_until rowq_claim.lease_until%type;
begin
    savepoint rowq_call;
    internal_dequeue(
        p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, v_part_id, v_claim_id,
        v_lease_until
    );

    open p_rows for
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               l.claim_id, l.message_id, l.attempt, m.message_type, m.headers, m.body,
               m.body_binary, m.enqueued_at, v_lease_until as lease_until, m.last_error
        from rowq_leased l
        join rowq_message m
          on m.part_id = l.part_id
         and m.message_id = l.message_id
        where l.part_id = v_part_id
          and l.claim_id = v_claim_id
        order by l.part_id, l.claim_id, l.place;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end dequeue_fast;

procedure dequeue_wait(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_wait_seconds  in number default 20,
    p_rows          out sys_refcursor
)
is
-- routine   dequeue_wait
-- version   1
-- purpose   As dequeue_fast, but wait until something is ready or the time is up; fewer messages where they are long.
-- promise   P03 P17
-- locks     as dequeue_fast; while it waits, of dbms_lock where the owner may, the queue's one lock
-- commits   after each look, so that nothing is held while it waits; refuses an open transaction
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array, in a result of one row and column
    v_part_id        rowq_queue.part_id%type;
    v_claim_id       rowq_claim.claim_id%type;
    v_lease_until    rowq_claim.lease_until%type;
    v_messages       clob;
    v_until          timestamp(6);
    v_left           number;
    v_pause          number := 0.02;
    v_lock           number;
    v_is_leader      boolean := false;
    v_has_doorbell   boolean := false;
    v_listened_until timestamp(6);
begin
    if dbms_transaction.local_transaction_id is not null then
        raise_application_error(
            -20713,
            'RQ713 wrong_transaction_state: dequeue_wait commits while it waits; end your'
            || ' transaction first'
        );
    end if;
    if p_wait_seconds is null then
        internal_refuse('wait_seconds must be between 0 and 3600, got null');
    end if;
    internal_check_range('wait_seconds', p_wait_seconds, 0, 3600);
    v_until := sys_extract_utc(systimestamp) + numtodsinterval(p_wait_seconds, 'second');

    begin
        loop
            internal_dequeue(
                p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, v_part_id, v_claim_id,
                v_lease_until
            );
            if v_claim_id is not null then
                internal_fit(v_part_id, v_claim_id);
                v_messages := internal_messages_json(v_part_id, v_claim_id, v_lease_until);
                if v_listened_until is not null then
                    internal_note_listener(v_part_id, null);
                end if;
            end if;
            commit;
            v_left := internal_seconds_since(sys_extract_utc(systimestamp), v_until);
            exit when v_claim_id is not null or v_left <= 0;

            if v_lock is null and v_left >= 1 then
                v_lock := internal_wait_lock(v_part_id);
                v_has_doorbell := internal_has_doorbell;
            end if;
            if v_left < 1 or v_lock = 0 or (v_is_leader and not v_has_doorbell) then
                dbms_session.sleep(least(v_pause, v_left));
                v_pause := least(v_pause * 2, 0.25);
            elsif v_is_leader then
                internal_listen(v_part_id, v_listened_until, v_has_doorbell);
                commit;
            else
                -- One waiter of a queue looks for all. The others wait for its lock, and look once
                -- a second should it have been left behind.
                v_is_leader := internal_lead(v_lock);
            end if;
        end loop;
        if v_is_leader then
            internal_stop_leading(v_lock);
        end if;
    exception
        when others then
            -- There was no transaction when the call began, so all of this one is its own.
            rollback;
            if v_is_leader then
                internal_stop_leading(v_lock);
            end if;
            raise;
    end;

    open p_rows for
        select v_messages as messages
        from dual;
end dequeue_wait;

procedure drop_queue(
    p_queue_name in varchar2,
    p_force      in number default 0,
    p_rows       out sys_refcursor
)
is
-- routine   drop_queue
-- version   1
-- purpose   Remove an empty queue, or with force a queue and everything in it, archive included.
-- promise   P02 P15
-- locks     the tables against writers, waiting for a second at most; all rows of the queue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    savepoint rowq_call;
    if p_force not in (0, 1) then
        internal_refuse('force must be 0 or 1');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    internal_remove_queue(v_queue.part_id, p_queue_name, coalesce(p_force, 0) = 1);

    open p_rows for
        select p_queue_name as queue_name, 'dropped' as outcome
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end drop_queue;

procedure enqueue(
    p_queue_name    in varchar2,
    p_body          in clob default null,
    p_body_binary   in blob default null,
    p_message_type  in varchar2 default null,
    p_headers       in clob default null,
    p_priority      in number default 5,
    p_delay_seconds in number default null,
    p_run_at        in timestamp default null,
    p_dedup_key     in varchar2 default null,
    p_max_attempts  in number default null,
    p_rows          out sys_refcursor
)
is
-- routine   enqueue
-- version   1
-- purpose   Hand over one message.
-- promise   P01 P05 P11 P12 P15 P20
-- locks     new rows; with a dedup key, waits for another open enqueue of it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   an empty text is null to Oracle: pass empty_clob() for an empty body
    v_fault varchar2(32767);
    v_queue t_queue;
    v_new   t_new_messages;
begin
    savepoint rowq_call;
    v_fault := internal_message_fault(
        p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds, p_run_at,
        p_dedup_key, p_max_attempts
    );
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;
    v_queue := internal_require_queue(p_queue_name);
    v_fault := internal_body_fault(p_body, p_body_binary, v_queue.max_body_length);
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;

    v_new(1) := internal_new_message(
        sys_extract_utc(systimestamp), 0, p_body, p_body_binary, p_message_type, p_headers,
        p_priority, p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts
    );
    internal_store(v_queue.part_id, p_queue_name, v_new);
    internal_ring(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select v_new(1).message_id as message_id, v_new(1).outcome as outcome
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end enqueue;

procedure enqueue_batch(
    p_queue_name in varchar2,
    p_messages   in clob,
    p_rows       out sys_refcursor
)
is
-- routine   enqueue_batch
-- version   1
-- purpose   Hand over many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20
-- locks     new rows; waits for open enqueues of the same keys, in key order
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
    v_new   t_new_messages;
    v_lines rowq_lines := rowq_lines();
begin
    savepoint rowq_call;
    v_queue := internal_require_queue(p_queue_name);
    v_new := internal_parse_messages(p_messages, v_queue.max_body_length);
    internal_store(v_queue.part_id, p_queue_name, v_new);
    internal_ring(v_queue.part_id, v_queue.listened_until);
    v_lines.extend(v_new.count);
    for i in 1 .. v_new.count loop
        v_lines(i) := rowq_line(i, v_new(i).message_id, null, null, v_new(i).outcome, null);
    end loop;

    open p_rows for
        select n.place as position, n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end enqueue_batch;

procedure extend_lease(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_lease_seconds in number default null,
    p_rows          out sys_refcursor
)
is
-- routine   extend_lease
-- version   1
-- purpose   Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.
-- promise   P08
-- locks     the claim row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue       t_queue;
    v_row_id      rowid;
    v_lease_until rowq_claim.lease_until%type;
    cursor claim_row is
        select c.rowid, c.lease_until
        from rowq_claim c
        where c.part_id = v_queue.part_id
          and c.claim_id = p_claim_id
        for update;
begin
    savepoint rowq_call;
    internal_check_claim(p_claim_id);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    v_queue := internal_require_queue(p_queue_name);

    open claim_row;
    fetch claim_row into v_row_id, v_lease_until;
    close claim_row;
    if v_row_id is null then
        internal_refuse_claim(p_claim_id);
    end if;
    v_lease_until := greatest(
        v_lease_until,
        sys_extract_utc(systimestamp)
        + numtodsinterval(coalesce(p_lease_seconds, v_queue.lease_seconds), 'second')
    );
    update rowq_claim c
    set c.lease_until = v_lease_until
    where c.rowid = v_row_id;

    open p_rows for
        select p_claim_id as claim_id, v_lease_until as lease_until
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end extend_lease;

procedure fail_now(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_error       in clob default null,
    p_rows        out sys_refcursor
)
is
-- routine   fail_now
-- version   1
-- purpose   Declare messages dead without another attempt.
-- promise   P08 P10
-- locks     the claim row; then message, dead and dedup rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue    t_queue;
    v_ids      rowq_ids;
    v_messages t_messages;
    v_lines    rowq_lines;
begin
    savepoint rowq_call;
    v_ids := internal_ids_given(p_message_ids);
    internal_check_claim(p_claim_id);
    v_queue := internal_require_queue(p_queue_name);

    v_messages := internal_take(v_queue.part_id, p_claim_id, v_ids);
    internal_to_dead(v_queue.part_id, v_messages, p_error);
    v_lines := internal_outcomes(v_ids, v_messages, 'dead');

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end fail_now;

procedure get_message(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
-- routine   get_message
-- version   1
-- purpose   Where a message is and everything about it; no row when rowq does not know it.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue       t_queue;
    v_due_at      timestamp(6);
    v_state       varchar2(20 char);
    v_lane        number;
    v_attempt     number;
    v_claim_id    number;
    v_worker_name rowq_claim.worker_name%type;
    v_lease_until timestamp(6);
    v_finished_at timestamp(6);
    v_is_known    pls_integer;
begin
    if p_message_id is null then
        internal_refuse('message_id is missing');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    select count(*), max(m.due_at) into v_is_known, v_due_at
    from rowq_message m
    where m.part_id = v_queue.part_id
      and m.message_id = p_message_id;

    if v_is_known = 1 then
        internal_find(
            v_queue.part_id, p_message_id, v_due_at, v_state, v_lane, v_attempt, v_claim_id,
            v_worker_name, v_lease_until, v_finished_at
        );
        open p_rows for
            select m.message_id, v_state as state, trunc(v_lane / 2) as priority,
                   v_attempt as attempt,
                   coalesce(m.max_attempts, v_queue.max_attempts) as max_attempts, m.message_type,
                   m.headers, m.body, m.body_binary, m.dedup_key, m.enqueued_at,
                   v_due_at as due_at, v_claim_id as claim_id, v_worker_name as worker_name,
                   v_lease_until as lease_until, v_finished_at as finished_at, m.last_error
            from rowq_message m
            where m.part_id = v_queue.part_id
              and m.message_id = p_message_id;
    else
        open p_rows for
            select a.message_id, a.state, trunc(a.lane / 2) as priority, a.attempt,
                   cast(null as number) as max_attempts, a.message_type, a.headers, a.body,
                   a.body_binary, a.dedup_key, a.enqueued_at, cast(null as timestamp) as due_at,
                   cast(null as number) as claim_id,
                   cast(null as varchar2(200 char)) as worker_name,
                   cast(null as timestamp) as lease_until, a.finished_at,
                   to_clob(null) as last_error
            from rowq_archive a
            where a.part_id = v_queue.part_id
              and a.message_id = p_message_id;
    end if;
end get_message;

procedure health(p_rows out sys_refcursor)
is
-- routine   health
-- version   1
-- purpose   What hurts: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   checks of the horizon and the archive are this engine's
    type t_named is record (
        part_id    rowq_queue.part_id%type,
        queue_name rowq_queue.queue_name%type,
        paused_at  rowq_queue.paused_at%type
    );
    type t_named_list is table of t_named index by pls_integer;
    v_queues t_named_list;
    v_checks rowq_checks := rowq_checks();
begin
    internal_health_server(v_checks);
    select q.part_id, q.queue_name, q.paused_at
    bulk collect into v_queues
    from rowq_queue q
    order by q.queue_key;
    for i in 1 .. v_queues.count loop
        internal_health_queue(
            v_queues(i).part_id, v_queues(i).queue_name, v_queues(i).paused_at is not null, v_checks
        );
    end loop;

    open p_rows for
        select n.check_name, n.queue_name,
               case
                   when n.measured >= n.critical then 'critical'
                   when n.measured >= n.warning then 'warning'
                   else 'ok'
               end as status,
               n.measured as value, n.detail
        from table(v_checks) n
        order by nlssort(n.check_name, 'nls_sort=binary'),
                 nlssort(n.queue_name, 'nls_sort=binary') nulls first;
end health;

procedure list_dead(
    p_queue_name       in varchar2,
    p_after_message_id in number default 0,
    p_max_messages     in number default 100,
    p_rows             out sys_refcursor
)
is
-- routine   list_dead
-- version   1
-- purpose   Dead messages, without their bodies, in the order of their ids.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    v_queue := internal_require_queue(p_queue_name);

    open p_rows for
        select /*+ leading(h m) use_nl(m) index(m rowq_message_pk) */
               h.message_id, trunc(h.lane / 2) as priority, h.attempt, m.message_type,
               m.enqueued_at, h.died_at, m.last_error
        from (
            select /*+ index_rs_asc(d rowq_dead_pk) */
                   d.part_id, d.message_id, d.lane, d.attempt, d.died_at
            from rowq_dead d
            where d.part_id = v_queue.part_id
              and d.message_id > coalesce(p_after_message_id, 0)
            order by d.part_id, d.message_id
            fetch first p_max_messages rows only
        ) h
        join rowq_message m
          on m.part_id = h.part_id
         and m.message_id = h.message_id
        order by h.message_id;
end list_dead;

procedure maintain(
    p_queue_name in varchar2 default null,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   maintain
-- version   1
-- purpose   All housekeeping of one queue, or of every queue: promote, reap, floors, archive. Call it about once a second.
-- promise   P09 P11 P13 P14 P19
-- locks     a row of lane of each queue, passed over when locked; as promote, reap and archive
-- commits   never; the caller owns the transaction. Partitions are dropped in one of its own
-- errors    RQ701 RQ711
-- differs   with more than 1000 queues, a call without a name takes 1000 of them at random
    type t_names is table of rowq_queue.queue_name%type index by pls_integer;
    -- A queue that was dropped meanwhile: an error only for who has named it.
    e_gone exception;
    pragma exception_init(e_gone, -20701);
    c_most constant pls_integer := 1000;
    v_seed  constant pls_integer := trunc(dbms_random.value(0, 1000000));
    v_names t_names;
    v_kept  rowq_kept;
    v_rows  rowq_kept_list := rowq_kept_list();
    cursor some_queues is
        select q.queue_name
        from rowq_queue q
        order by ora_hash(q.part_id, 4294967295, v_seed);
begin
    savepoint rowq_call;
    internal_check_batch_size(p_batch_size);
    if p_queue_name is null then
        open some_queues;
        fetch some_queues bulk collect into v_names limit c_most;
        close some_queues;
    else
        v_names(1) := p_queue_name;
    end if;

    for i in 1 .. v_names.count loop
        begin
            internal_maintain(
                v_names(i), internal_require_queue(v_names(i)), p_batch_size, v_kept
            );
            v_rows.extend;
            v_rows(v_rows.last) := v_kept;
        exception
            when e_gone then
                if p_queue_name is not null then
                    raise;
                end if;
        end;
    end loop;

    open p_rows for
        select n.queue_name, n.elected, n.promoted, n.reaped, n.died, n.archived, n.purged,
               n.partitions_dropped
        from table(v_rows) n;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end maintain;

procedure pause_queue(
    p_queue_name in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   pause_queue
-- version   1
-- purpose   Stop delivery; enqueue and the finishing routines go on.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
    set q.paused_at = coalesce(q.paused_at, sys_extract_utc(systimestamp))
    where q.part_id = v_queue.part_id;
    if sql%rowcount = 0 then
        -- Dropped while this waited for it.
        internal_refuse_queue(p_queue_name);
    end if;

    open p_rows for
        select p_queue_name as queue_name, 'paused' as outcome
        from dual;
end pause_queue;

procedure peek(
    p_queue_name in varchar2,
    p_batch_size in number default 1,
    p_rows       out sys_refcursor
)
is
-- routine   peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
    v_lines rowq_lines;
begin
    internal_check_whole('batch_size', p_batch_size, 1, 1000, p_is_required => true);
    v_queue := internal_require_queue(p_queue_name);
    v_lines := internal_look_ready(v_queue.part_id, p_batch_size);

    open p_rows for
        select /*+ leading(n m) use_nl(m) index(m rowq_message_pk) */
               n.message_id, trunc(n.lane / 2) as priority, n.attempt, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, m.last_error
        from table(v_lines) n
        join rowq_message m
          on m.part_id = v_queue.part_id
         and m.message_id = n.message_id
        order by n.place;
end peek;

procedure promote(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   promote
-- version   1
-- purpose   Make delayed messages ready whose time has come.
-- promise   P11
-- locks     delayed rows, passing over locked ones; new ready rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue    t_queue;
    v_promoted pls_integer;
begin
    savepoint rowq_call;
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    v_promoted := internal_promote(v_queue.part_id, p_batch_size);
    if v_promoted > 0 then
        internal_ring(v_queue.part_id, v_queue.listened_until);
    end if;

    open p_rows for
        select v_promoted as promoted
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end promote;

procedure purge_archive(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   purge_archive
-- version   1
-- purpose   Delete archived messages older than the queue's archive_days, and drop partitions that no queue needs.
-- promise   P19
-- locks     archive rows, passing over locked ones; for a drop a partition, tried
-- commits   never; the caller owns the transaction. Partitions are dropped in one of its own
-- errors    RQ701 RQ711
-- differs   partitions only where partition_archive.sql has made them
    v_queue   t_queue;
    v_purged  pls_integer;
    v_dropped pls_integer;
begin
    savepoint rowq_call;
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    -- Before this transaction has touched the archive, so that it does not stand in its own way.
    v_dropped := internal_drop_days;
    v_purged := internal_purge_archive(
        v_queue.part_id,
        sys_extract_utc(systimestamp) - numtodsinterval(v_queue.archive_days, 'day'),
        p_batch_size
    );

    open p_rows for
        select v_purged as purged, v_dropped as partitions_dropped
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end purge_archive;

procedure purge_queue(
    p_queue_name   in varchar2,
    p_include_dead in number default 0,
    p_max_messages in number default null,
    p_rows         out sys_refcursor
)
is
-- routine   purge_queue
-- version   1
-- purpose   Delete waiting messages, ready and delayed; leased ones stay with their workers.
-- promise   P15
-- locks     ready, delayed, dead rows, passing over locked ones; message and dedup rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue   t_queue;
    v_removed number;
begin
    savepoint rowq_call;
    if p_include_dead not in (0, 1) then
        internal_refuse('include_dead must be 0 or 1');
    end if;
    internal_check_whole('max_messages', p_max_messages, 1, 10000);
    v_queue := internal_require_queue(p_queue_name);

    v_removed := internal_purge_ready(v_queue.part_id, p_max_messages);
    v_removed := v_removed
        + internal_purge_waiting(v_queue.part_id, false, p_max_messages - v_removed);
    if p_include_dead = 1 then
        v_removed := v_removed
            + internal_purge_waiting(v_queue.part_id, true, p_max_messages - v_removed);
    end if;

    open p_rows for
        select v_removed as removed
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end purge_queue;

procedure queue_stats(
    p_queue_name in varchar2 default null,
    p_max_count  in number default 100000,
    p_rows       out sys_refcursor
)
is
-- routine   queue_stats
-- version   1
-- purpose   Counts, age and settings of one queue or all.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue  t_queue;
    v_parts  t_numbers;
    v_counts rowq_counts := rowq_counts();
begin
    internal_check_whole('max_count', p_max_count, 1, 100000000, p_is_required => true);
    if p_queue_name is null then
        select q.part_id bulk collect into v_parts
        from rowq_queue q;
    else
        v_queue := internal_require_queue(p_queue_name);
        v_parts(1) := v_queue.part_id;
    end if;
    v_counts.extend(v_parts.count);
    for i in 1 .. v_parts.count loop
        v_counts(i) := internal_count_messages(v_parts(i), p_max_count);
    end loop;

    open p_rows for
        select q.queue_name, nvl2(q.paused_at, 1, 0) as is_paused, n.ready_count as ready,
               n.delayed_count as delayed, n.leased_count as leased, n.dead_count as dead,
               n.oldest_seconds as oldest_ready_seconds,
               q.lease_seconds, q.max_attempts, q.backoff_base_seconds, q.backoff_factor,
               q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length
        from table(v_counts) n
        join rowq_queue q on q.part_id = n.part_id
        order by q.queue_key;
end queue_stats;

procedure reap(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   reap
-- version   1
-- purpose   Take unfinished messages back from claims whose lease ran out.
-- promise   P03 P09
-- locks     expired claim rows, passing over locked ones; message, ready, dead and dedup rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue  t_queue;
    v_reaped pls_integer;
    v_died   pls_integer;
begin
    savepoint rowq_call;
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    internal_reap(v_queue, p_batch_size, v_reaped, v_died);
    if v_reaped > 0 then
        internal_ring(v_queue.part_id, v_queue.listened_until);
    end if;

    open p_rows for
        select v_reaped as reaped, v_died as died
        from dual;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end reap;

procedure release(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_rows        out sys_refcursor
)
is
-- routine   release
-- version   1
-- purpose   Give messages back to the front of their priority without spending the attempt.
-- promise   P08
-- locks     the claim row; then new ready rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue    t_queue;
    v_ids      rowq_ids;
    v_messages t_messages;
    v_lines    rowq_lines;
begin
    savepoint rowq_call;
    v_ids := internal_ids_given(p_message_ids);
    internal_check_claim(p_claim_id);
    v_queue := internal_require_queue(p_queue_name);

    v_messages := internal_take(v_queue.part_id, p_claim_id, v_ids);
    v_lines := internal_outcomes(v_ids, v_messages, 'released');
    internal_to_front(v_messages, 1);
    internal_to_ready(v_queue.part_id, v_messages);
    internal_ring(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end release;

procedure reset(
    p_queue_name   in varchar2,
    p_message_ids  in clob default null,
    p_max_messages in number default 1000,
    p_rows         out sys_refcursor
)
is
-- routine   reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.
-- promise   P10 P12
-- locks     dead rows, passing over locked ones; dedup rows; new ready rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue    t_queue;
    v_ids      rowq_ids;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_lines    rowq_lines;
    v_limit    pls_integer;
    cursor asked_for is
        select /*+ index(d rowq_dead_pk) */ d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = v_queue.part_id
          and d.message_id in (select a.column_value from table(v_ids) a)
        order by d.part_id, d.message_id
        for update skip locked;
    cursor oldest is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = v_queue.part_id
        order by d.part_id, d.message_id
        for update skip locked;
begin
    savepoint rowq_call;
    v_ids := internal_ids_given(p_message_ids);
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    v_queue := internal_require_queue(p_queue_name);

    if v_ids is null then
        v_limit := p_max_messages;
        open oldest;
        fetch oldest bulk collect into v_locked limit v_limit;
        close oldest;
    else
        v_limit := 10000;
        open asked_for;
        fetch asked_for bulk collect into v_locked limit v_limit;
        close asked_for;
    end if;
    internal_revive(v_queue.part_id, v_ids, v_locked, v_messages, v_lines);
    internal_to_ready(v_queue.part_id, v_messages);
    internal_ring(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end reset;

procedure resume_queue(
    p_queue_name in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   resume_queue
-- version   1
-- purpose   Start delivery again.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
    set q.paused_at = null
    where q.part_id = v_queue.part_id;
    if sql%rowcount = 0 then
        -- Dropped while this waited for it.
        internal_refuse_queue(p_queue_name);
    end if;
    internal_ring(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select p_queue_name as queue_name, 'resumed' as outcome
        from dual;
end resume_queue;

procedure retry_later(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_message_ids   in clob default null,
    p_delay_seconds in number default null,
    p_error         in clob default null,
    p_rows          out sys_refcursor
)
is
-- routine   retry_later
-- version   1
-- purpose   Give messages back for another attempt after a delay, the queue's backoff unless delay_seconds is given; without an attempt left they are dead.
-- promise   P08 P10
-- locks     the claim row; then message, delayed, ready, dead or dedup rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue    t_queue;
    v_ids      rowq_ids;
    v_messages t_messages;
    v_alive    t_messages;
    v_dead     t_messages;
    v_due_at   t_moments;
    v_lines    rowq_lines;
begin
    savepoint rowq_call;
    v_ids := internal_ids_given(p_message_ids);
    internal_check_claim(p_claim_id);
    internal_check_range('delay_seconds', p_delay_seconds, 0, 315360000);
    v_queue := internal_require_queue(p_queue_name);

    v_messages := internal_take(v_queue.part_id, p_claim_id, v_ids);
    internal_split(v_queue, v_messages, v_alive, v_dead);
    internal_back_off(v_queue, v_alive, p_delay_seconds, v_due_at);
    internal_to_delayed(v_queue.part_id, v_alive, v_due_at, p_error);
    internal_to_dead(v_queue.part_id, v_dead, p_error);
    internal_ring(v_queue.part_id, v_queue.listened_until);
    v_lines := internal_retries(v_ids, v_messages, v_alive, v_due_at);

    open p_rows for
        select n.message_id, n.outcome, n.due_at
        from table(v_lines) n
        order by n.place;
exception
    when others then
        rollback to savepoint rowq_call;
        raise;
end retry_later;

procedure version(p_rows out sys_refcursor)
is
-- routine   version
-- version   1
-- purpose   What is installed.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
begin
    open p_rows for
        select max(case when m.name = 'rowq_version' then m.value end) as rowq_version,
               to_number(max(case when m.name = 'schema_version' then m.value end), '9999')
                   as schema_version,
               (
                   select max(p.product || ' ' || p.version_full)
                   from product_component_version p
                   where p.product like 'Oracle%'
               ) as engine
        from rowq_meta m;
end version;

end rowq;
/
