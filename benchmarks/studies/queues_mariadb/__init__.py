"""Compares rowq with two usual ways of making a queue of one table, on MariaDB."""
