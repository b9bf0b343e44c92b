"""What every study is run and written by; see ../README.md."""
