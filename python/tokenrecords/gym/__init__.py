"""Adoption inside a running NeMo Gym: `install()`, and from then on this process runs on this package.

`tokenrecords.gym.staging` is the drop-in namespace of its staging digests.
"""

from tokenrecords.gym.adoption import Installed, install, status, uninstall
from tokenrecords.gym.contract import UnknownReleaseError

__all__ = ["Installed", "UnknownReleaseError", "install", "status", "uninstall"]
