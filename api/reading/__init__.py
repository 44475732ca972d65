"""What each question stands on: who asks, one consistent look at the rows, pages of them, and their evidence."""
