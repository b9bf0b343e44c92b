-- There is one database, named rowq. Everything is utf8mb4 and is compared byte by byte. Names and
-- keys are kept as bytes, because even a binary collation ignores trailing blanks.
create database if not exists rowq character set utf8mb4 collate utf8mb4_bin;
