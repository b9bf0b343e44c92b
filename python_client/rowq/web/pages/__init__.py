"""What answers a GET: one function for each page, and for each part of one that follows changes."""
