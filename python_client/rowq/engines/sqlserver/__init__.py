"""The SQL Server and Azure SQL engine; see docs/contributing.md, "Add an engine"."""
