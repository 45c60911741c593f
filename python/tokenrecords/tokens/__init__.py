"""Token ids, log-probs and expert routes: the names of their fields, and the judges of their values."""
