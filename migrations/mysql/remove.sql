-- This script ends a rollback to nothing: one statement removes everything, the bookkeeping too.
-- migrate has looked before that nobody else has put anything into the database. The roles stay, so
-- that the accounts that have them need not be given them again.
drop database if exists rowq;
