"""Prints what this installation is: `python -m tokenrecords.info`."""

from tokenrecords.info.installation import installation

if __name__ == "__main__":
    print(installation())  # noqa: T201 - its purpose
