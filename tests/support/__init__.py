"""What several test modules share: factories, odd holders of values, and other opinions on what is right."""
