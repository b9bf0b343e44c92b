"""What all commands of the program share."""
