procedure internal_check_batch_size(p_batch_size in number)
is
-- routine   internal_check_batch_size
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000.
-- promise   P15
-- errors    RQ711
begin
    internal_check_whole('batch_size', p_batch_size, 1, 10000, p_is_required => true);
end internal_check_batch_size;
