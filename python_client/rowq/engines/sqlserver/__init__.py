"""All that rowq knows of SQL Server and Azure SQL; see sql/README.md, "Adding an engine"."""
