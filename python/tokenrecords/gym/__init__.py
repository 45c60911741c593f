"""Adoption inside a running NeMo Gym: `tokenrecords.gym.staging` has the names of its staging digests."""
