"""Installation, status and checks on this engine."""
