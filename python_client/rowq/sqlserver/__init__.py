"""Migrations on SQL Server and Azure SQL."""
