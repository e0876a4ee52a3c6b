"""Short tools of an agent: ``toolbox.py call KIND ARGUMENT``, or ``serve`` them over stdio, one JSON line a call.

The answer to a call is one line of JSON. Served (the shape of MCP: JSON-RPC 2.0, method ``tools/call``) the answer also
has the ``usage`` of that call: what getrusage(2) of this process and of its children grew by.
"""

from __future__ import annotations

import configparser
import csv
import hashlib
import io
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import urllib.request
from collections import defaultdict
from typing import Any

QUERIES = {
    "point": "SELECT id, region, amount FROM sales WHERE id = {n}",
    "range": "SELECT id, amount FROM sales WHERE id BETWEEN {n} AND {n} + 99 ORDER BY amount, id",
    "scan": "SELECT region, count(*), sum(amount) FROM sales GROUP BY region ORDER BY region",
    "join": "SELECT r.name, sum(s.amount) FROM sales s JOIN regions r ON r.code = s.region GROUP BY r.name ORDER BY 1",
}


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def sql(argument: str) -> Any:
    """A query, or a transaction of one row that is taken back in the next call of it."""
    what, n = argument.split(":")
    with sqlite3.connect("sales.db") as base:
        if what == "write":
            base.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (int(n), f"note {n}"))
            rows = base.execute("SELECT text FROM notes WHERE id = ?", (int(n),)).fetchall()
        else:
            rows = base.execute(QUERIES[what].format(n=n)).fetchall()
    base.close()
    return [len(rows), digest(rows)]


def transform(argument: str) -> Any:
    """CSV to JSON, grouped."""
    with open(argument, newline="") as file:
        rows = list(csv.DictReader(file))
    groups: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        groups[row["region"]].append(int(row["amount"]))
    out = io.StringIO()
    csv.writer(out).writerows((name, len(found), sum(found)) for name, found in sorted(groups.items()))
    text = json.dumps([dict(row) for row in rows])
    return [len(rows), digest(json.loads(text)), digest(out.getvalue())]


def read(argument: str) -> Any:
    with open(argument, encoding="utf-8") as file:
        text = file.read()
    return [len(text), hashlib.sha256(text.encode()).hexdigest()[:16]]


def grep(argument: str) -> Any:
    name, _, pattern = argument.partition(":")
    with open(name, encoding="utf-8") as file:
        found = [row for row in file if re.search(pattern, row)]
    return [len(found), digest(found)]


def script(argument: str) -> Any:
    """Another interpreter that runs a small script."""
    done = subprocess.run([sys.executable, "-c", argument], capture_output=True, text=True, timeout=60)
    return [done.returncode, done.stdout.strip()]


def config(argument: str) -> Any:
    """A value of an INI or JSON file is set; the file is written anew and renamed."""
    name, _, value = argument.partition(":")
    with open(name) as file:
        text = file.read()
    if name.endswith(".json"):
        made = json.loads(text)
        made["limits"]["rate"] = int(value)
        text = json.dumps(made, indent=1)
    else:
        parser = configparser.ConfigParser()
        parser.read_string(text)
        parser["limits"]["rate"] = value
        out = io.StringIO()
        parser.write(out)
        text = out.getvalue()
    with open(f"{name}.new", "w") as file:
        file.write(text)
    os.replace(f"{name}.new", name)
    return [len(text), hashlib.sha256(text.encode()).hexdigest()[:16]]


def http(argument: str) -> Any:
    """GET of so many bytes, or POST of them."""
    method, size = argument.split(":")
    with open("port") as file:
        url = f"http://127.0.0.1:{int(file.read())}/bytes/{size}"
    body = b"x" * int(size) if method == "POST" else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, data=body, method=method), timeout=60) as answer:
        data = answer.read()
    return [answer.status, len(data), hashlib.sha256(data).hexdigest()[:16]]


KINDS = {"sqlite": sql, "transform": transform, "read": read, "grep": grep, "script": script, "config": config,
         "http": http}  # fmt: skip


def load(folder: str) -> str:
    """Makes ``sales.db`` here of ``sales.csv`` and ``regions.json``."""
    with open(os.path.join(folder, "sales.csv"), newline="") as file:
        rows = [(int(row["id"]), row["region"], int(row["amount"])) for row in csv.DictReader(file)]
    with open(os.path.join(folder, "regions.json")) as file:
        regions = sorted(json.load(file).items())
    base = sqlite3.connect("sales.db")
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, region TEXT, amount INTEGER)")
    base.execute("CREATE TABLE regions (code TEXT PRIMARY KEY, name TEXT)")
    base.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    base.executemany("INSERT INTO sales VALUES (?, ?, ?)", rows)
    base.executemany("INSERT INTO regions VALUES (?, ?)", regions)
    base.execute("CREATE INDEX by_region ON sales (region)")
    base.commit()
    base.close()
    return f"loaded {len(rows)} rows"


def usage() -> list[int]:
    """Microseconds of user and system time, small and large faults, switches of both kinds, with children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return [
        sum(round(one.ru_utime * 1e6) for one in both), sum(round(one.ru_stime * 1e6) for one in both),
        sum(one.ru_minflt for one in both), sum(one.ru_majflt for one in both), sum(one.ru_nvcsw for one in both),
        sum(one.ru_nivcsw for one in both),
    ]  # fmt: skip


def serve() -> None:
    """Answers calls until the input ends."""
    print(json.dumps({"ready": sorted(KINDS)}), flush=True)
    for row in sys.stdin:
        before, request = usage(), json.loads(row)
        try:
            result = KINDS[request["params"]["name"]](request["params"]["arguments"])
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        except Exception as error:  # the caller is told, whatever it was, and the server goes on
            answer = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": repr(error)}}
        answer["usage"] = [new - old for new, old in zip(usage(), before, strict=True)]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "load":
        print(load(sys.argv[2]))
    else:
        print(json.dumps(KINDS[sys.argv[2]](sys.argv[3])))
