"""Builds, chats and bursts: real compilers, sockets and memory, in short settings."""

import shutil

import pytest
from tasks_run import agent_of

from cpubench.analysis.task_times import scored_agents
from cpubench.tasks import burst_steps, cbuild, chat_steps
from cpubench.tasks.catalogue import Task, fleets, known, solo
from cpubench.tasks.plan import LEFT_OUT, PROFILES, Options, many, numbers, planned, predicted_s, spec_of, too_many
from cpubench.tasks.tools import bpe, chat_client

SHORT = """
from cpubench.tasks import burst, burst_steps
for module in (burst, burst_steps):
    module.FIRST_S, module.BURST_S, module.EVERY_S = 0.3, 0.3, 0.9
"""


def test_a_project_is_built_its_bug_found_fixed_and_what_depends_built_again(generated, tmp_path):
    found = agent_of(Task("T1b", ("parallel",)), generated, tmp_path)
    assert (found["failures"], found["leftovers"]) == ([], [])
    assert len(found["spans"]["step"]) == 13
    assert found["spans"]["forks"][1] >= 2 * (cbuild.UNITS + 1)  # cc and what it starts


def test_a_source_that_does_not_compile_fails_the_build(generated, tmp_path):
    whole = tmp_path / "inputs"
    shutil.copytree(generated, whole)
    (whole / "c" / "unit_03.c").write_text("no C\n")
    found = agent_of(Task("T1b", ("serial",)), whole, tmp_path, pins=None)
    assert found["failures"][0].startswith("build.1: ended with 1, not 0")


def test_one_session_has_the_pinned_answers_and_the_hosts_time_is_its_own(generated, tmp_path):
    found = agent_of(Task("T5", ("1k",)), generated, tmp_path)
    assert (found["failures"], found["leftovers"]) == ([], [])
    steps = [step.kind for step in solo_steps("1k")]
    spans = found["spans"]
    turns = [spans["user_us"][at] + spans["sys_us"][at] for at, step in enumerate(spans["step"])
             if steps[step] == "turn" and not spans["background"][at]]  # fmt: skip
    assert len(turns) == chat_steps.TURNS
    assert sum(turns) > 0
    assert spans["background"].count(True) == 1  # the host's; the client is the harness's
    assert found["harness_us"] > 0


def solo_steps(context):
    from test_tasks_run import NOWHERE

    return chat_steps.steps(NOWHERE, context)


def test_many_sessions_are_answered_alike_and_counted_in_their_window(generated, tmp_path):
    found = agent_of(Task("T5", ("1k",), agents=5), generated, tmp_path, window_ns=800_000_000)
    assert (found["failures"], found["leftovers"]) == ([], [])
    spans = found["spans"]
    assert set(spans["agent"]) == set(range(5))
    columns = [spans[name] for name in ("start_ns", "wall_ns", "background")]
    ends = [start + wall for start, wall, back in zip(*columns, strict=True) if not back]
    assert all(0 <= end <= 800_000_000 for end in ends)
    assert spans["user_us"][spans["background"].index(True)] > 0


def test_a_wrong_answer_fails_the_window(generated, tmp_path):
    wrong = {f"turn.{n}": "0" * 16 for n in range(chat_steps.TURNS)}
    from cpubench.tasks import inputs

    pins = inputs.outputs("T5 1k") | wrong
    found = agent_of(Task("T5", ("1k",), agents=2), generated, tmp_path, window_ns=500_000_000, pins=pins)
    assert found["failures"][0].endswith("the answer is not what it is on other hosts")


def test_neighbours_work_outside_of_bursts_and_during_them(generated, tmp_path):
    task = Task("T6", ("8MB", "64MB"), agents=3)
    found = agent_of(task, generated, tmp_path, SHORT, window_ns=1_500_000_000)
    assert (found["failures"], found["leftovers"]) == ([], [])
    spans = found["spans"]
    pairs = set(zip(spans["step"], spans["agent"], strict=True))
    assert {step for step, agent in pairs if agent == 0} == {burst_steps.BURST}
    assert {step for step, agent in pairs if agent > 0} <= {burst_steps.OUTSIDE, burst_steps.DURING}
    bursts = [at for at, step in enumerate(spans["step"]) if step == burst_steps.BURST]
    assert len(bursts) == 2
    assert all(spans["wall_ns"][at] >= 300_000_000 for at in bursts)
    assert all(spans["peak_bytes"][at] >= 72 << 20 for at in bursts)


def test_steps_are_told_apart_by_when_they_begin():
    at = {-1.0: burst_steps.OUTSIDE, 2.9: burst_steps.OUTSIDE, 3.0: burst_steps.DURING, 4.4: burst_steps.DURING,
          4.6: burst_steps.OUTSIDE, 9.1: burst_steps.DURING}  # fmt: skip
    assert {second: burst_steps.place_at(second, burst_steps.bursts(20)) for second in at} == at
    for window_s, second in ((4, 3.1), (22, 21.2)):  # a burst that would not end in the window is not taken
        assert burst_steps.place_at(second, burst_steps.bursts(window_s)) == burst_steps.OUTSIDE
    assert burst_steps.bursts(5) == [3.0]
    assert burst_steps.bursts(20) == [3.0, 9.0, 15.0]


@pytest.mark.parametrize(
    ("divisor", "paced"), [({"kind": "granted_cpu", "n": 1.5}, 1.5), ({"kind": "vcpu", "n": 2}, 4)]
)
def test_neighbours_are_paced_to_what_a_quota_grants(divisor, paced):
    held = {name: {"path": name} for name in ("python3", "sh")}
    document = {"programs": held, "cpus": [0, 1, 2, 3], "seed": 1, "divisor": divisor}
    assert spec_of(document, Options("quick"), Task("T6", ("46MB", "512MB"), agents=8), 0)["paced_cpus"] == paced


@pytest.mark.parametrize("cores", [0.5, 1, 1.5, 1.9, 2, 6, 64])
def test_the_scored_row_of_t4_is_in_every_profile_also_under_a_quota(cores):
    for profile in PROFILES:
        assert scored_agents(cores) in numbers(Options(profile), cores)
    assert abs(scored_agents(cores) - 4 * cores) < 1


def test_a_burst_that_cannot_be_had_is_a_failure(generated, tmp_path):
    limit = SHORT + "import resource; resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20))"
    found = agent_of(Task("T6", ("8MB", "900MB"), agents=2), generated, tmp_path, limit, window_ns=900_000_000)
    if not found["failures"]:
        pytest.skip("this kernel does not count mappings as data")
    assert "900 MiB cannot be had" in found["failures"][0]


def test_memory_is_scaled_in_steps_to_half_of_the_hosts():
    assert burst_steps.sizes(64 << 30, 8) == ("185MB", "2048MB")
    assert burst_steps.sizes(6 << 30, 8) == ("185MB", "1024MB")
    assert burst_steps.sizes(3 << 30, 8) == ("92MB", "512MB") or burst_steps.sizes(3 << 30, 8) == ("46MB", "512MB")
    assert burst_steps.sizes(1 << 30, 8) is None
    (task,) = [task for task in many("quick", 2, 1 << 30) if task.task == "T6"]
    assert "half of the usable memory is 512 MiB" in too_many(task, 1 << 30)
    assert too_many(Task("T5", ("1k",), agents=1024), 1 << 30) is not None
    assert too_many(fleets([1])[0], 1 << 20) is None


def test_a_task_is_known_with_any_number_of_agents_but_not_with_any_parameters():
    for task in planned(Options("standard"), 6, (), 64 << 30):
        assert known(task), task.name
    for task in (Task("T6", ("1MB", "2MB"), agents=8), Task("T3", ("cage",)), Task("T1b", ("serial",), agents=3)):
        assert not known(task), task.name


def test_tokens_are_the_bytes_of_the_text(generated):
    text = (generated / "chat" / "text.txt").read_text()[:20_000] + " caf\u00e9 \u2713\n"
    ranks, cache = bpe.load(str(generated / "chat" / "merges.txt")), {}
    tokens = bpe.tokenised(text, ranks, cache)
    parts = {number: bytes([number]) for number in range(256)}
    for (a, b), made in ranks.items():
        parts[made] = parts[a] + parts[b]
    assert b"".join(parts[token] for token in tokens) == text.encode()
    assert 2 < len(text.encode()) / len(tokens) < 5
    assert bpe.tokenised(text, ranks, cache) == tokens
    assert len(cache) <= bpe.CACHED


def test_merges_go_by_rank_and_a_full_cache_is_emptied(monkeypatch):
    ranks = {pair: 256 + n for n, pair in enumerate(bpe.train([("aab", 3), ("ab", 2)], 2))}
    assert bpe.merged("aab", ranks) == [257]  # "ab" is the most frequent pair, and then "a" before it
    monkeypatch.setattr(bpe, "CACHED", 2)
    cache = {}
    bpe.tokenised("one two three four", ranks, cache)
    assert len(cache) <= 2


def test_a_request_has_the_size_that_was_asked_for(generated):
    text = (generated / "chat" / "text.txt").read_text()
    for size in chat_steps.SIZES.values():
        made = {chat_client.request(text, size, turn) for turn in range(chat_steps.TURNS)}
        assert len(made) == chat_steps.TURNS
        assert all(size <= len(body) < 1.08 * size + 200 for body in made)


@pytest.mark.parametrize(("profile", "most_s"), [("quick", 240), ("standard", 1800)])
def test_a_run_of_all_tasks_is_planned_to_fit_its_time_on_two_cpus(profile, most_s):
    tasks = planned(Options(profile), 2, (), 16 << 30)
    assert len({task.name for task in tasks}) == len(tasks)
    one = PROFILES[profile]
    order = [task for task in tasks for _ in range(one.windows if task.windowed else one.repeats)]
    assert predicted_s(Options(profile), order, 2) <= most_s
    assert one.repeats >= (3 if profile == "quick" else 8)
    assert {task.task for task in solo()} | {"T4", "T6"} == {task.task for task in tasks}
    assert not LEFT_OUT[profile] - {task.name for task in solo()}
