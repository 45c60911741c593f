"""The arrays that a trainer takes."""
