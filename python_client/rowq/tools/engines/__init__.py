"""What installing and examining rowq needs of each engine, one package each."""
