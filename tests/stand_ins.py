"""Blocks that are made up in place of processes, for tests of what runs do around them."""

import json
from pathlib import Path

import made
import msgspec

from cpubench.entry import main
from cpubench.results.files import sealed
from cpubench.results.orders import orders
from cpubench.results.records import Plan

TIMES = {"start_utc_ns": 1, "ready_ns": 10**9, "prepare_ns": 10**9, "rounds_ns": 10**9, "timed_ns": 1, "hook_ns": 0,
         "clock_read_ns": 30}  # fmt: skip


class Children:
    """Stands in for the processes: ``ends`` says what happens instead of a calibration (-1) or of a block."""

    def __init__(self):
        self.ends, self.workdirs, self.started = {}, [], []

    def __call__(self, module, arguments, workdir, rng, installed=None):
        self.workdirs.append(workdir)
        is_block = module.endswith(".block")
        plan = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=Plan)
        index = int(arguments[1]) if is_block else -1
        self.started.append(index)
        if index in self.ends:
            raise self.ends[index]
        if is_block:
            Path(arguments[3]).write_text(json.dumps(block(plan, index)))
        else:
            sizes = {v.key: [1000, 0 if v.copies == "1" else 20_000_000, 20_000_000] for v in plan.variants}
            Path(arguments[1]).write_text(
                json.dumps({"sizes": sizes, "errors": {}, "prepare_ns": 10**10, "floor_ps": 300})
            )


def block(plan, index):
    cells = [made.made_cell(variant, plan.samples, 1.0) for variant in plan.variants]
    return sealed({
        "schema": "cpubench.block/1", "plan_id": plan.id, "index": index, "cap": "as-is",
        "times": TIMES | {"timed_ns": made.made_times(cells)["timed_ns"]}, "environment": {}, "windows": [],
        "rounds": orders(msgspec.to_builtins(plan), index, "as-is"), "cells": cells,
    })  # fmt: skip


def cpubench(capsys, *arguments):
    """(exit code, stdout, lines on stderr) of a call in this process."""
    code = main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out, told.err.splitlines()
