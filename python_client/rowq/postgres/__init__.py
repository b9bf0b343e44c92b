"""Migrations on PostgreSQL."""
