"""What can be answered: the projection kernel and one file per read model."""
