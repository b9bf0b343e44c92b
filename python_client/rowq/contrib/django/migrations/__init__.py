"""Migrations of rowq, one for each of its own."""
