"""What a collector does with the records of a directory: rebuilds each rollout, and prints a digest of all of them.

python collector.py DIRECTORY ROLLOUT...
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path

from nemo_gym.token_id_capture.consumer import trajectories_for_rollout


def main() -> None:
    directory, *names = sys.argv[1:]
    trajectories_for_rollout("none", [Path(directory)])  # what is imported and made once
    seconds, digest = 0.0, hashlib.sha256()
    for name in names:
        begun = time.process_time()
        built = trajectories_for_rollout(name, [Path(directory)])
        seconds += time.process_time() - begun
        del built["_capture_snapshot"]["snapshot_id"]  # drawn anew each time
        digest.update(json.dumps(built, default=str, sort_keys=True).encode())
    print(json.dumps({"seconds": seconds / len(names), "digest": digest.hexdigest()}))


if __name__ == "__main__":
    main()
