from typing import Any

from typing_extensions import disjoint_base

BUILD: dict[str, str]

class CopyLost(RuntimeError):
    seat: int | None
    def __init__(self, reason: str, seat: int | None = None) -> None: ...

class PoolBroken(RuntimeError): ...

def now_ns() -> int: ...
def clock_read_ns() -> float: ...
def die_with(parent: int) -> None: ...
def private_tmpfs(path: str, size_bytes: int) -> None: ...
def kernels(hidden: bool = False) -> list[dict[str, Any]]: ...

@disjoint_base
class Pool:
    seats: list[tuple[int, int]]
    touch_ns: int
    def __init__(
        self,
        program: str,
        target: str,
        directory: str,
        seats: list[tuple[int, int]],
        llc_bytes: int = 0,
        seed: int = 1,
        storage: str | None = None,
    ) -> None: ...
    def close(self) -> None: ...
    def prepare(
        self, slot: int, kernel: int, param: int, value: int, copies: list[tuple[int, list[int]]]
    ) -> list[dict[str, Any]]: ...
    def sample(
        self, slot: int, seats: list[int], ops: int, window_ns: int, deadline_ns: int, due_ns: int = 0
    ) -> list[dict[str, Any]]: ...
    def release(self, slot: int) -> list[dict[str, Any]]: ...
