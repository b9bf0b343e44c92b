"""AsyncQueue on connections of asyncpg; a module for each engine that asyncpg speaks with."""
