"""What belongs to other libraries, or only some applications need."""
