-- Use the installing account as definer, in place of owner.sql. RQ803: the account has its rights
-- by a role. In a routine MariaDB ignores such rights, so every call would fail; MySQL uses those
-- of the default roles.
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
