set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRefuse
    @fault nvarchar(max)
as
begin
-- routine   InternalRefuse
-- purpose   Raise the error for an invalid argument.
-- promise   P15
-- errors    RQ711
-- differs   PostgreSQL raises with an expression
    set nocount on;
    declare @text nvarchar(2048) = concat(N'RQ711 invalid_argument: ', left(@fault, 400));
    -- throw reads %% as %, so each % of the text is doubled.
    set @text = replace(@text, N'%', N'%%');
    throw 52711, @text, 1;
end
go
