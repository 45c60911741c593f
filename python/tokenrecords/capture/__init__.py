"""Served responses to stamped records and files of rollouts."""
