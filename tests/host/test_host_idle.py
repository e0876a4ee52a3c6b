from pathlib import Path

from cpubench.host.idle import idle_usage


def test_entries_of_each_idle_state_or_nothing(tmp_path: Path) -> None:
    for number, (name, usage) in enumerate([("POLL", "12"), ("C1", "345\n"), ("C6", "broken")]):
        state = tmp_path / f"sys/devices/system/cpu/cpu3/cpuidle/state{number}"
        state.mkdir(parents=True)
        (state / "name").write_text(name + "\n")
        (state / "usage").write_text(usage)
    assert idle_usage(3, tmp_path) == {"POLL": 12, "C1": 345}
    assert idle_usage(0, tmp_path) == {}
