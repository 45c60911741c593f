"""What the launcher puts on PYTHONPATH: this directory, for the `sitecustomize` in it."""
