-- The end of a rollback to 0: drop everything, including the migration record. migrate has checked
-- before that the database has no foreign objects. The roles stay, so that accounts keep them.
drop database if exists rowq;
