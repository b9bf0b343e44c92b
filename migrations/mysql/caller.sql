-- This script takes the place of owner.sql where the routines shall run as the account that
-- installs them. RQ803: the account has its rights by a role. MariaDB does not count such rights in
-- a routine, so that every call would fail; MySQL counts those of the default roles.
set @rowq_fault = if(
    version() like '%MariaDB%' and @rowq_lacks is not null,
    concat('RQ803 missing_privilege: ', @rowq_lacks, ' other than by a role'), null
);
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select `', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;
