-- Take the migration lock for the session. RQ806: another migration is still running after 60
-- seconds, or it was a rollback to 0.
set @rowq_lock = null;
select l.lock_name into @rowq_lock
from rowq.migration_lock l
where l.id = 1;
set @rowq_fault = if(
    coalesce(get_lock(@rowq_lock, 60), 0) = 0, 'RQ806 migration_busy', null
);
select if(@rowq_fault is null and count(*) = 0, 'RQ806 migration_busy', @rowq_fault)
into @rowq_fault
from rowq.migration_lock l
where l.lock_name = @rowq_lock;
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select `', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;
