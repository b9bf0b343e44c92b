"""rowq beside two usual ways of making a queue of one table, on MariaDB."""
