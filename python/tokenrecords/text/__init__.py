"""What others wrote, made fit to be looked at."""
