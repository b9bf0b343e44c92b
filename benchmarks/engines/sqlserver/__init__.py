"""SQL Server as the seeds' experiments need it: sessions, observers, fresh databases."""
