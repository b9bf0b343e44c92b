"""What a worker tells Prometheus of itself."""
