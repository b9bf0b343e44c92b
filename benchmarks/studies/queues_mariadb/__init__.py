"""Compares rowq with two usual queue tables, on MariaDB."""
