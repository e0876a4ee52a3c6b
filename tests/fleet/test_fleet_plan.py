"""The plan of a fleet, its inventory, its state and its lock; no host."""

import json
import os
import subprocess
import sys
import time
from collections import Counter

import pytest

from cpubench import SUITE_VERSION
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.fleet import plan, state
from cpubench.fleet.asked import planned
from cpubench.fleet.engine import check_ansible
from cpubench.fleet.inventory import Host, load_inventory
from cpubench.fleet.layout import PLAN, RUN, SUM, Cell, cell_folder, cell_of, check_name, results
from cpubench.fleet.lock import controller
from cpubench.fleet.template import PLAYBOOK

yaml = pytest.importorskip("yaml", reason="needs the extra fleet")


def hosts(count, **own):
    return [
        Host(f"h{n:03}", own.get("group"), own.get("caps"), own.get("range_w"), f"h{n:03}:22") for n in range(count)
    ]


def made(hosts_, caps=("as-is",), repeats=2, seed=1):
    return plan.make(
        "demo", hosts_, caps, repeats, ["--profile", "quick"], seed=seed, group="candidates", versions={"a": 1},
        expected_s=1, deadline_s=9, created_utc="2026-01-01T00:00:00Z",
    )  # fmt: skip


def written(tmp_path, text):
    file = tmp_path / "inventory.yml"
    file.write_text(text)
    return file


def test_a_plan_holds_each_run_once_and_the_seed_alone_decides_its_order():
    one = made(hosts(20), ("as-is", "300W", "70%"), 3)
    cells = plan.cells_of(one)
    assert len(set(cells)) == len(cells) == 180
    assert made(hosts(20), ("as-is", "300W", "70%"), 3)["cells"] == one["cells"]
    assert made(hosts(20), ("as-is", "300W", "70%"), 3, seed=2)["cells"] != one["cells"]


def test_hosts_caps_and_repeats_are_interleaved():
    cells = plan.cells_of(made(hosts(30), ("as-is", "300W", "70%"), 4))
    for at in range(0, len(cells), 30):  # every turn has each host once
        assert len({cell.host for cell in cells[at : at + 30]}) == 30
    for at in range(0, len(cells), 90):  # every repeat has each level of each host once
        assert len({(cell.host, cell.cap) for cell in cells[at : at + 90]}) == 90
        assert {cell.repeat for cell in cells[at : at + 90]} == {1 + at // 90}
    first = Counter(cell.cap for cell in cells[:30])
    assert all(2 <= first[cap] <= 20 for cap in ("as-is", "300W", "70%"))  # no level goes first everywhere
    orders = [[cell.host for cell in cells[at : at + 30]] for at in range(0, len(cells), 30)]
    assert len({tuple(order) for order in orders}) == len(orders)


def test_the_hash_is_of_what_is_measured():
    one = made(hosts(1))
    assert made(hosts(3), ("300W",), 5, seed=9)["suite_hash"] == one["suite_hash"]
    other = plan.suite_hash({"a": 2}, ["--profile", "quick"])
    assert len({one["suite_hash"], other, plan.suite_hash({"a": 1}, ["--profile", "standard"])}) == 3


def test_a_cap_that_a_host_cannot_take_is_refused():
    with pytest.raises(UsageError, match=r"host h000: 300W is not within 150 to 250 W"):
        made(hosts(1, range_w=(150.0, 250.0)), ("300W",))
    assert made(hosts(1, range_w=(150.0, 300.0)), ("300W", "as-is", "70%"))["cells"]


def test_a_plan_that_was_changed_is_refused(tmp_path):
    file = tmp_path / PLAN
    document = made(hosts(2))
    file.write_text(json.dumps(document))
    assert plan.load(file) == document
    file.write_text(json.dumps({**document, "seed": 2}))
    with pytest.raises(UsageError, match="was changed"):
        plan.load(file)
    file.write_text("{}")
    with pytest.raises(UsageError, match="schema"):
        plan.load(file)
    with pytest.raises(UsageError, match="no plan: make one"):
        plan.load(tmp_path / "none.json")


INNER = """
all:
  vars: {power_group: all, caps: [as-is]}
  children:
    candidates:
      vars: {power_group: rack}
      children:
        left: {hosts: {a: {}, b: {power_group: own, cap_range_watts: [100, 200]}}}
        right: {vars: {power_group: right}, hosts: {c: {caps: [300W, 70 %]}}}
    others: {hosts: {z: {}}}
"""


def test_the_nearest_variable_counts(tmp_path):
    found = load_inventory(written(tmp_path, INNER))
    assert [(host.name, host.group, host.caps) for host in found] == [
        ("a", "rack", ("as-is",)), ("b", "own", ("as-is",)), ("c", "right", ("300W", "70%")),
    ]  # fmt: skip
    assert found[1].range_w == (100.0, 200.0)
    assert [host.name for host in load_inventory(tmp_path / "inventory.yml", "right")] == ["c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("candidates: {hosts: {a: {}, a: {}}}", "line 1: 'a' is there twice"),
        ("x: &x {hosts: {a: {}}}\ncandidates: {<<: *x, vars: {}, vars: {}}", "line 2: 'vars' is there twice"),
        ("candidates: {hosts: {a: {yes: 1, true: 2}}}", "True' is there twice"),
        ("candidates: {hosts: {a: {note: !unsafe {b: 1, b: 2}}}}", "'b' is there twice"),
        ("candidates: {hosts: {a: {power_group: !vault $ANSIBLE_VAULT;1.1}}}", "host a: power_group is vaulted"),
        ("candidates: {hosts: {a: {ansible_host: x}, b: {ansible_host: x}}}", "a and b are both x:22"),
        ("candidates: {children: {racks: {}}}", "group 'racks' is named, and no host is in it"),
        ("candidates: {children: {racks: null}}", "group 'racks' is named, and no host is in it"),
        ("other: {hosts: {a: {}}}", "there is no group 'candidates'; known: other"),
        ("candidates: {host: {a: {}}}", "none of hosts, vars and children"),
        ("candidates: {hosts: {a: {caps: [0W]}}}", "host a: '0W': a cap is above 0"),
        ("candidates: {hosts: {a: {caps: [170%]}}}", "170%.* is no cap"),
        ("candidates: {hosts: {a: {caps: [70%, 70 %]}}}", "70% is given twice"),
        ("candidates: {hosts: {a: {caps: 300W}}}", "caps is no list"),
        ("candidates: {hosts: {a: {cap_range_watts: [300, 200]}}}", "cap_range_watts is not like"),
        ("candidates: {hosts: {a: {power_group: [x]}}}", "power_group is no name"),
        ("candidates: {hosts: {../a: {}}}", "is no name for a folder"),
        ("candidates: {hosts: [a, b]}", "hosts of group candidates is no mapping"),
        ("candidates: {hosts: {a: 1}}", "host a is no mapping"),
        ("candidates: {children: &x {candidates: {children: *x}}}", "nested|not YAML|is no inventory"),
        ("candidates: [", "is not YAML"),
        ("candidates: !!python/object:os.system {}", "is not YAML"),
        ("", "holds no groups"),
        ("- a", "holds no groups"),
        ("\x00", "is not YAML|is no inventory"),
    ],
)
def test_an_inventory_that_makes_no_sense_is_one_line(tmp_path, text, words):
    with pytest.raises(UsageError, match=words) as error:
        load_inventory(written(tmp_path, text))
    assert "\n" not in str(error.value)
    assert "inventory.yml" in error.value.where


MERGED = """
candidates:
  vars: &common {power_group: rack, ansible_user: root}
  hosts:
    a: &a
      <<: *common
      ansible_host: x
      ansible_become_password: !vault |
        $ANSIBLE_VAULT;1.1;AES256
        6162
      note: !unsafe "{{ not a template }}"
      notes: !unsafe [{ b: c }]
    b: {<<: *a, ansible_host: y}
    c: {<<: [*a, *common], ansible_host: z, power_group: own}
    d: {<<: *a, <<: *common, ansible_host: w}
"""


def test_what_ansible_reads_is_an_inventory_here_and_vaulted_text_stays(tmp_path):
    found = load_inventory(written(tmp_path, MERGED))
    assert [(host.name, host.group, host.address) for host in found] == [
        ("a", "rack", "x:22"), ("b", "rack", "y:22"), ("c", "own", "z:22"), ("d", "rack", "w:22"),
    ]  # fmt: skip
    assert (tmp_path / "inventory.yml").read_text() == MERGED


def test_ansible_has_the_same_of_that_file(tmp_path):
    try:
        tool = check_ansible() / "ansible-inventory"
    except UsageError as fault:
        pytest.skip(str(fault))
    file = written(tmp_path, MERGED)
    done = subprocess.run([tool, "-i", file, "--list"], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, "HOME": str(tmp_path)})  # fmt: skip
    told = json.loads(done.stdout)["_meta"]["hostvars"]
    assert [(name, one["power_group"], f"{one['ansible_host']}:22") for name, one in sorted(told.items())] == [
        (host.name, host.group, host.address) for host in load_inventory(file)
    ]
    vaulted = {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256\n6162\n"}
    assert [one["ansible_become_password"] for one in told.values()] == [vaulted] * 4


def test_names_of_one_machine_may_share_a_power_group(tmp_path):
    text = "candidates: {vars: {power_group: g}, hosts: {a: {ansible_host: x}, b: {ansible_host: x}}}"
    assert len(load_inventory(written(tmp_path, text))) == 2


def test_a_thousand_names_are_planned_in_two_seconds(tmp_path):
    """CPU time, of reading them and of ordering 9,000 runs: 0.4 s where it was written."""
    named = {f"h{n:04}": {"ansible_host": f"10.0.0.{n % 2}", "power_group": f"g{n % 2}"} for n in range(1000)}
    file = written(tmp_path, yaml.safe_dump({"candidates": {"hosts": named}}))
    began = time.process_time()
    assert len(made(load_inventory(file), ("as-is", "300W", "70%"), 3)["cells"]) == 9000
    assert time.process_time() - began < 2.0


def test_names_of_cells_are_read_back(tmp_path):
    for cap in ("as-is", "300W", "70%", "12.5%", "proxy:freq=2.4GHz"):
        cell = Cell("node1", cap, 12, "0123456789ab")
        assert cell_of(cell_folder(tmp_path, cell)) == cell
    assert cell_of(tmp_path / "notes") is None
    for name in ("..", ".x", "a/b", "", "a b", "-x", "x" * 101, "\x1b[31m"):
        with pytest.raises(UsageError, match="is no name"):
            check_name(name, "x")


def put(fleet, cell, data=b"x", sum_=None):
    import hashlib

    folder = cell_folder(fleet, cell)
    folder.mkdir(parents=True)
    (folder / RUN).write_bytes(data)
    (folder / SUM).write_text(f"{sum_ or hashlib.sha256(data).hexdigest()}  {RUN}\n")


def test_a_result_is_done_a_changed_one_is_missing_and_a_failure_is_told(tmp_path):
    document = made(hosts(4), repeats=1)
    cells = sorted(plan.cells_of(document))
    put(tmp_path, cells[0])
    put(tmp_path, cells[1], sum_="0" * 64)
    state.write_failure(tmp_path, cells[2], "busy", "a\nb \x1b[31m")
    found = state.status(tmp_path, document)
    rows = {row["host"]: row for row in found["rows"]}
    assert [rows[cell.host]["state"] for cell in cells] == ["done", "missing", "failed", "missing"]
    assert rows["h002"]["text"] == "a\\nb \\x1b[31m"
    assert (found["done"], found["failed"], found["missing"], found["failures"]) == (1, 1, 2, {"busy": 1})
    assert [cell.host for cell, _ in results(tmp_path)] == ["h000", "h001"]
    (cell_folder(tmp_path, cells[2]) / "failure.json").write_text('{"class": "<b>", "text": 1}')
    assert state.status(tmp_path, document)["failed"] == 0


def test_two_controllers_at_once_are_one_line_and_a_dead_one_keeps_nothing(tmp_path):
    holder = (
        "import sys; from pathlib import Path; from cpubench.fleet.lock import controller\n"
        "with controller(Path(sys.argv[1])): print('has it', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "has it\n"
        with pytest.raises(UsageError, match="another `cpubench fleet` works in there"), controller(tmp_path):
            pass
        other.kill()
        other.wait()
    with controller(tmp_path):
        pass


def test_results_that_cannot_be_written_are_one_line(tmp_path, capsys):
    assert main(["fleet", "init", str(tmp_path / "demo")]) == 0
    (tmp_path / "results").write_text("a file")
    capsys.readouterr()
    code = main(["fleet", "plan", str(tmp_path / "demo"), "--results", str(tmp_path / "results")])
    assert (code, len(capsys.readouterr().err.splitlines())) == (2, 1)
    assert (tmp_path / "results").read_text() == "a file"


def test_a_deadline_that_is_not_given_is_as_the_help_says(tmp_path):
    (tmp_path / "demo").mkdir()
    for name in PLAYBOOK:
        (tmp_path / "demo" / name).write_text("candidates: {hosts: {a: {}}}")
    run = {"--profile": "quick", "--meter": None, "--budget": "2m"}
    plain_s, powered_s = 3 * 120 + 600, 3 * (120 + 300) + 600
    for caps, meter, own, told_s in (
        ("as-is", None, None, plain_s), ("300W", None, None, powered_s), ("as-is", "auto", None, powered_s),
        ("300W", None, "7m", 420),
    ):  # fmt: skip
        asked = (tmp_path / "demo", tmp_path / "r", [caps], 1, "candidates", run | {"--meter": meter}, own, 1)
        assert planned(*asked)[0]["deadline_s"] == told_s


def test_an_installation_without_the_playbook_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cpubench.fleet.playbook", None)
    assert main(["fleet", "init", str(tmp_path / "demo")]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "cpubench: fleet init: its playbook is not in this installation: install cpubench again"
    ]
    assert not (tmp_path / "demo").exists()


def test_init_plan_and_status_have_their_shapes(tmp_path, capsys):
    folder, kept = str(tmp_path / "demo"), ["--results", str(tmp_path / "r"), "--json"]
    assert main(["fleet", "init", folder, "--json"]) == 0
    assert "site.yml" in json.loads(capsys.readouterr().out)["files"]
    assert main(["fleet", "init", folder, "--json"]) == 2  # nothing is written over
    capsys.readouterr()
    assert main(["fleet", "status", folder, *kept]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "no_plan"
    assert main(["fleet", "plan", folder, "--cap", "300W", "--cap", "70%", "--seed", "3", *kept]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["hosts"], told["runs"], told["seed"]) == (2, 12, 3)
    assert main(["fleet", "status", folder, *kept]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["planned"], told["done"], told["missing"], len(told["rows"])) == (12, 0, 12, 12)
    assert json.loads((tmp_path / "r" / "demo" / PLAN).read_text())["suite"] == SUITE_VERSION
    assert main(["fleet", "plan", folder, "--cap", "0W", *kept]) == 2
    assert main(["fleet", "plan", folder, "--group", "none", *kept]) == 2
