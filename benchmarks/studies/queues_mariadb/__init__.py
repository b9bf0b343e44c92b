"""The second engine: MariaDB, measured in the same harness."""
