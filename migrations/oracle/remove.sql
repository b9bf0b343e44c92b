-- The end of a rollback to nothing: the bookkeeping. The roles stay: who has them need not be given
-- them again.
drop table rowq_migration_log purge
/
drop table rowq_migration_lock purge
/
drop table rowq_migration purge
/
