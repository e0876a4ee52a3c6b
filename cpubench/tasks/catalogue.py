"""Which tasks there are: names such as ``T1[verify-heavy,light]``, and what each needs of a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cpubench.errors import UsageError
from cpubench.tasks import bugfix, burst_steps, cbuild, chat_steps, sandbox, starts, toolmix
from cpubench.tasks.steps import Place, Step

DOCS = {
    "T0": "empty shells and empty interpreters: the price of a start",
    "T1": "a bug fix in a project of 400 files: environment, wheels, build, search, edits, 200 tests, clean-up",
    "T1b": "a C project of 40 files: build, failing test, fix, incremental builds, test",
    "T2": "200 short calls of tools: database, transforms, files, scripts, settings, local HTTP",
    "T3": "ten sandboxes, one after another: made, `python3 -c`, taken down; or many at once",
    "T4": "many agents at once, each at T1[verify-heavy,light] with pauses for the model",
    "T5": "a host of chats: JSON, template, tokens, session, event stream; one session or many",
    "T6": "agents that hold their memory and work, and one that takes much more for a moment",
}
VERSIONS = {
    "T0": starts.VERSION, "T1": bugfix.VERSION, "T1b": cbuild.VERSION, "T2": toolmix.VERSION, "T3": sandbox.VERSION,
    "T4": bugfix.VERSION, "T5": chat_steps.VERSION, "T6": burst_steps.VERSION,
}  # fmt: skip
FLEET = ("verify-heavy", "light")  # the T1 that each agent of T4 does


@dataclass(frozen=True)
class Task:
    """A task with its parameters; ``tools`` are optional programs that make it a variant of its own."""

    task: str
    params: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    agents: int = 1

    @property
    def name(self) -> str:
        shown = [*(self.params if self.task != "T4" else ()), *self.tools]
        if self.windowed:
            shown.append(f"{'sessions' if self.task == 'T5' else 'agents'}={self.agents}")
        return f"{self.task}[{','.join(shown)}]" if shown else self.task

    @property
    def version(self) -> int:
        return VERSIONS[self.task]

    @property
    def windowed(self) -> bool:
        """Whether many do it in a window; else one does it from its first step to its last."""
        return self.task in ("T4", "T6") or self.agents > 1

    @property
    def prepared(self) -> int:
        """Steps whose work can be copied to another folder."""
        return bugfix.PREPARED if self.task == "T4" else 0

    @property
    def unit(self) -> int:
        """Steps that belong together: an agent begins at the first of them."""
        return sandbox.CYCLE if self.task == "T3" else 1

    def steps(self, place: Place) -> list[Step]:
        """What each agent of it does."""
        if self.task in ("T1", "T4"):
            return bugfix.steps(place, self.params[0], self.params[1], self.tools)
        if self.task == "T0":
            return starts.steps(place)
        if self.task == "T6":
            return burst_steps.steps(place)
        makers = {"T1b": cbuild.steps, "T2": toolmix.steps, "T3": sandbox.steps, "T5": chat_steps.steps}
        return makers[self.task](place, self.params[0])

    def variables(self) -> dict[str, str]:
        """What the environment of its steps has beside."""
        return bugfix.variables(self.params[1]) if self.task in ("T1", "T4") else {}

    def pinned(self) -> str:
        """The key of its outputs in ``pins.json``: regimes, channels, rungs and other tools do not change them."""
        if self.task in ("T1", "T4"):
            return f"T1 {self.params[0]}"
        return f"T5 {self.params[0]}" if self.task == "T5" else self.task


def solo(tools: Sequence[str] = ()) -> list[Task]:
    """The tasks of one agent."""
    fixes = [Task("T1", (profile, regime), tuple(tools)) for profile in bugfix.PROFILES for regime in bugfix.REGIMES]
    others = {"T1b": cbuild.WAYS, "T2": toolmix.CHANNELS, "T3": (*sandbox.RUNGS, *sandbox.ADAPTERS),
              "T5": tuple(chat_steps.SIZES)}  # fmt: skip
    return [Task("T0"), *fixes, *(Task(name, (param,)) for name, params in others.items() for param in params)]


def fleets(numbers: Sequence[int], tools: Sequence[str] = ()) -> list[Task]:
    """T4 with so many agents."""
    return [Task("T4", FLEET, tuple(tools), number) for number in numbers]


def known(task: Task) -> bool:
    """Whether there is such a task, with whatever number of agents or sessions."""
    if task.task == "T4":
        return task.params == FLEET
    if task.task == "T6":
        return not task.tools and task.params in burst_steps.SIZES
    alone = replace(task, agents=1)
    return alone in solo(task.tools) and (task.agents == 1 or task.task in ("T3", "T5"))


def chosen(tasks: Sequence[Task], wanted: Sequence[str] | None) -> list[Task]:
    """Those of the tasks that are wanted, by task (T1) or full name; T0 is always among them."""
    if wanted is None:
        return list(tasks)
    known = {name for one in tasks for name in (one.task, one.name)}
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        what = f"there is no task {unknown[0]!r}" if unknown else "the list of tasks is empty"
        raise UsageError("task", f"{what}; `cpubench tasks list` names them", "--tasks")
    return [one for one in tasks if one.task == "T0" or one.task in wanted or one.name in wanted]
