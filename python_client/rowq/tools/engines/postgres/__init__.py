"""What installing and examining rowq needs of the engine."""
