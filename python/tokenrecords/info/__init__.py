"""What this installation is, and what it computes with."""
