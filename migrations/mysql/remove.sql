-- The end of a rollback to nothing, bookkeeping and all in one statement. Before it begins, migrate
-- has looked that nobody else has put anything into the database. The roles stay: who has them need
-- not be given them again.
drop database if exists rowq;
