"""MariaDB: sessions through libmariadb, counters, fresh databases."""
