-- Internal procedures hand these lists to each other: no table stores them, and callers never see
-- them. In message_list, place is the order of delivery; group_key, the bytes of the key and a dot,
-- is of a message that joins a group or leaves it; is_tokenless is 1 for one that has no token of
-- its group, and is_cancelled for one of a claim that was cancelled there. A row of tie_list is
-- what the end of a message has to free: its dedup key, its token of a group, and what waits for it
-- (is_awaited is 1, or null). new_list has the messages of a batch, also those that are not added:
-- holder is the unfinished message that has the dedup key, this one or one with the same key;
-- key_bytes and group_key are bytes and a dot. given_list has a row for each key of each message of
-- a batch, in their order, so that no sort puts them together: value is cut to 402 UTF-16 units,
-- and size counts characters, or bytes of a binary body. parsed_list has the messages of a batch
-- with what is short of them; key_place counts those with the same dedup key.
set quoted_identifier on;
set ansi_nulls on;
go
if type_id(N'rowq.message_list') is null
create type rowq.message_list as table (
    message_id   bigint not null primary key clustered,
    lane         smallint not null,
    place        bigint not null,
    attempt      smallint not null,
    due_at       datetime2(6) null,
    group_key    varbinary(802) null,
    is_tokenless bit null,
    is_cancelled bit null
);
go
if type_id(N'rowq.tie_list') is null
create type rowq.tie_list as table (
    message_id bigint not null primary key clustered,
    dedup_key  nvarchar(400) collate Latin1_General_100_BIN2 null,
    group_key  nvarchar(400) collate Latin1_General_100_BIN2 null,
    is_awaited bit null
);
go
if type_id(N'rowq.new_list') is null
create type rowq.new_list as table (
    position   int not null primary key clustered,
    message_id bigint not null,
    key_bytes  varbinary(802) null,
    key_place  int not null,
    lane       smallint not null,
    due_at     datetime2(6) null,
    holder     bigint null,
    group_key  varbinary(802) null,
    on_dead    nvarchar(20) collate Latin1_General_100_BIN2 null
);
go
if type_id(N'rowq.given_list') is null
create type rowq.given_list as table (
    position  int not null,
    name      nvarchar(60) collate Latin1_General_100_BIN2 null,
    kind      tinyint not null,
    value     nvarchar(402) collate Latin1_General_100_BIN2 null,
    size      bigint null,
    is_base64 bit not null,
    moment    datetime2(6) null,
    index given_list_ix clustered (position)
);
go
if type_id(N'rowq.parsed_list') is null
create type rowq.parsed_list as table (
    position       int not null primary key clustered,
    lane           smallint not null,
    delay_seconds  float null,
    run_at         datetime2(6) null,
    message_type   nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key      nvarchar(400) collate Latin1_General_100_BIN2 null,
    key_place      int not null,
    max_attempts   smallint null,
    group_key      nvarchar(400) collate Latin1_General_100_BIN2 null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    expire_seconds float null
);
go
