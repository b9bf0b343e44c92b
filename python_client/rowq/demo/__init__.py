"""A private PostgreSQL to try rowq on, and the demo that runs on it."""
