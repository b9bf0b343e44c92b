"""Programs of the peers with a client in Python or SQL."""
