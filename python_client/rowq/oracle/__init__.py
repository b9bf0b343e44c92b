"""Migrations on Oracle."""
