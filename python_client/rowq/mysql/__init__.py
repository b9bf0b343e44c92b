"""Migrations on MariaDB and MySQL."""
