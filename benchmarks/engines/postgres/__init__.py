"""PostgreSQL: sessions through libpq, counters, fresh databases."""
