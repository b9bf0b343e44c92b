"""rowq beside pgmq and a bare table, on PostgreSQL."""
