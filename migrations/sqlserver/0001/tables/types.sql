-- What internal procedures hand to each other; no table stores them, and callers never see them.
-- place is the order of delivery. Names end in _list, as a type may not be called like a table.
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
