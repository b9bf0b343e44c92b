"""Programs that keep the protocol, one module for each peer with a client in Python."""
