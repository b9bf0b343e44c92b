set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckBody
    @body nvarchar(max),
    @body_binary varbinary(max),
    @max_length int
as
begin
-- routine   InternalCheckBody
-- purpose   Refuse a body that is longer than its queue takes.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @length bigint = datalength(@body_binary);
    declare @fault nvarchar(200);

    -- The collation counts an emoji as one character. It counts slowly, so use it only where the
    -- body has more UTF-16 units than the queue allows characters.
    if datalength(@body) / 2 > @max_length
        set @length = len((@body + N'.') collate Latin1_General_100_CI_AS_SC) - 1;
    if @length > @max_length
    begin
        set @fault = concat(
            N'body is ', @length, N' long, and the queue takes ', @max_length, N': max_body_length'
        );
        exec rowq.InternalRefuse @fault;
    end;
end
go
