"""What programs write into this repository: make generate, make release."""
