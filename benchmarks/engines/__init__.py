"""What the studies need of each engine: sessions, observers, fresh databases."""
