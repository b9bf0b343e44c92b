set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckBatchSize
    @batch_size int
as
begin
-- routine   InternalCheckBatchSize
-- purpose   Refuse a housekeeping batch_size that is missing or outside 1 to 10000.
-- promise   P15
-- errors    RQ711
    set nocount on;
    exec rowq.InternalCheckRange N'batch_size', @batch_size, 1, 10000, @is_required = 1;
end
go
