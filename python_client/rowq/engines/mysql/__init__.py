"""The MariaDB and MySQL engine; see docs/contributing.md, "Add an engine"."""
