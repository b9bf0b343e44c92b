"""All that rowq knows of SQL Server and Azure SQL; see docs/contributing.md, "Add an engine"."""
