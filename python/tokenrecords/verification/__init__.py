"""What is wrong with records, and what it means."""
