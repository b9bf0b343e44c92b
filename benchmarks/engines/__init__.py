"""Sessions, counters and fresh databases of each engine."""
