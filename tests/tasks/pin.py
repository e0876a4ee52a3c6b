"""Writes cpubench/tasks/pins.json anew, after a change of inputs or tasks: ``python tests/tasks/pin.py [T1b ..]``.

A change of what a task does raises its VERSION too.
"""

import json
import sys
import tempfile
from pathlib import Path

from cpubench.host.topology import allowed_cpus
from cpubench.tasks import agent, inputs, programs, rungs, sandbox
from cpubench.tasks.catalogue import solo

if __name__ == "__main__":
    wanted = sys.argv[1:]
    before = json.loads(inputs.PINS.read_text())["outputs"]
    outputs = {key: held for key, held in before.items() if wanted and key.partition(" ")[0] not in wanted}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, data in inputs.contents():
            target = folder / "inputs" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        manifest = inputs.manifest_hash(folder / "inputs")
        found = programs.probe(folder)
        paths = found.paths
        rungs.try_rungs(found, [*sandbox.RUNGS, *sandbox.ADAPTERS], folder)
        for number, task in enumerate(solo()):
            if wanted and task.task not in wanted:
                continue
            if found.reason(task):
                print(task.name, found.reason(task))
                continue
            spec = {"inputs": str(folder / "inputs"), "python": paths["python3"], "cc": paths["cc"],
                    "shell": paths["sh"], "cpus": allowed_cpus().value, "pins": None}  # fmt: skip
            done = agent.alone(spec, task, folder / str(number))
            assert not done["failures"], done["failures"]
            assert not done["leftovers"], done["leftovers"]
            held = outputs.setdefault(task.pinned(), {})
            for label, digest in done["outputs"].items():
                assert held.setdefault(label, digest) == digest, f"{task.name}: {label} differs"
            print(task.name, f"{done['wall_ns'] / 1e9:.1f} s", f"{done['tools_us'] / 1e6:.2f} core-s")
        pinned = {"inputs": manifest, "outputs": outputs}
    inputs.PINS.write_text(json.dumps(pinned, indent=1, sort_keys=True) + "\n")
