"""A shop that notifies its customers of their orders."""
