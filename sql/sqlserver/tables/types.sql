-- Internal procedures hand these lists to each other: no table stores them, and callers never see
-- them. In message_list, place is the order of delivery. given_list has a row for each key of each
-- message of a batch: value is cut to 402 UTF-16 units, and size counts characters, or bytes of a
-- binary body.
set quoted_identifier on;
set ansi_nulls on;
go
if type_id(N'rowq.message_list') is null
create type rowq.message_list as table (
    message_id bigint not null primary key clustered,
    lane       smallint not null,
    place      bigint not null,
    attempt    smallint not null,
    due_at     datetime2(6) null
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
    moment    datetime2(6) null
);
go
