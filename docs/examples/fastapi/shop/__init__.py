"""A shop that tells its customers of their orders."""
