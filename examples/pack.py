"""From files of records to the arrays of a training step: verify, build chains, pack.

python examples/pack.py records
"""

from __future__ import annotations

import sys

import tokenrecords as tr


def main(directory: str) -> None:
    entries = tr.read_jsonl(directory)
    report = tr.verify(entries)
    sound = [entry for entry in entries if (entry.rollout_id, entry.model_call_id) in report.sound]
    builds = {rollout: tr.build_chains(calls) for rollout, calls in tr.group_by_rollout(sound).items()}
    batch = tr.pack_chains([build.main for build in builds.values() if build.trainable], max_tokens=512)
    print(report.summary())
    for rollout, build in builds.items():
        if not build.trainable:
            print(f"{rollout} is left out: {', '.join(build.reasons)}")
    print("chains:", ", ".join(batch.rollout_ids))
    print(f"input_ids {batch.input_ids.dtype} {batch.input_ids.shape}, cu_seqlens {batch.cu_seqlens.tolist()}")
    print(f"{int(batch.loss_mask.sum())} of {len(batch.input_ids)} tokens are trained on")


if __name__ == "__main__":
    main(sys.argv[1])
