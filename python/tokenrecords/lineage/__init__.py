"""Which call continues which."""
