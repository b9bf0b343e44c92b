"""Compares rowq with pgmq and a bare table, on PostgreSQL."""
