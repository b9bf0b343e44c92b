"""Each engine as the studies need it: sessions, observers, fresh databases."""
