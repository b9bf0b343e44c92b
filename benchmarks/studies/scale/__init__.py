"""Many queues on one server, and many connections before it."""
