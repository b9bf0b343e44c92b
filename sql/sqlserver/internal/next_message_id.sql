set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNextMessageId
    @message_id bigint output
as
begin
-- routine   InternalNextMessageId
-- purpose   Return the number of a new message.
-- differs   elsewhere an expression: here its compilation may fail (error 11739) while the caller's
--           rowcount is set, and this is compiled only after the routine has set rowcount to 0
    set nocount on;
    set @message_id = next value for rowq.message_seq;
end
go
