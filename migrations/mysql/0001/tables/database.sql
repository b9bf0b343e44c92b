-- One database, named rowq. Everything is utf8mb4 and compared byte by byte; names and keys are
-- kept as bytes, because even a binary collation takes trailing blanks for nothing.
create database if not exists rowq character set utf8mb4 collate utf8mb4_bin;
