"""Writes cpubench/tasks/pins.json anew, after a change of inputs or tasks: ``python tests/tasks/pin.py``.

A change of what a task does raises its VERSION too.
"""

import json
import tempfile
from pathlib import Path

from cpubench.host.topology import allowed_cpus
from cpubench.tasks import agent, inputs, programs
from cpubench.tasks.catalogue import solo

if __name__ == "__main__":
    outputs = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, data in inputs.contents():
            target = folder / "inputs" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        paths = programs.probe(folder).paths
        for number, task in enumerate(solo()):
            spec = {"inputs": str(folder / "inputs"), "python": paths["python3"], "cc": paths["cc"],
                    "shell": paths["sh"], "cpus": allowed_cpus().value, "pins": None}  # fmt: skip
            found = agent.alone(spec, task, folder / str(number))
            assert not found["failures"], found["failures"]
            assert not found["leftovers"], found["leftovers"]
            held = outputs.setdefault(task.pinned(), {})
            for label, digest in found["outputs"].items():
                assert held.setdefault(label, digest) == digest, f"{task.name}: {label} differs"
            print(task.name, f"{found['wall_ns'] / 1e9:.1f} s")
        pinned = {"inputs": inputs.manifest_hash(folder / "inputs"), "outputs": outputs}
    inputs.PINS.write_text(json.dumps(pinned, indent=1, sort_keys=True) + "\n")
