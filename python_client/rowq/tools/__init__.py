"""The program, and what it is made of: install, status, doctor, metrics, the demo."""
