"""The shipped JSON Schema says what the records say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from made import made_run

from cpubench.results.schema import FILE, run_schema, schema_bytes


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(run_schema())
    return Draft202012Validator(run_schema())


def test_shipped_schema_is_up_to_date() -> None:
    assert FILE.read_bytes() == schema_bytes(), "run: python -m cpubench.results.schema"
    assert json.loads(FILE.read_text())["$id"] == "cpubench.run/1"


def test_a_made_run_fits_the_schema(validator: Draft202012Validator) -> None:
    validator.validate(made_run(2))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(schema="cpubench.run/2"),
        lambda d: d["passes"][1]["blocks"][0]["cells"][2]["copy_ops"].append(-1),
        lambda d: d["passes"][1]["blocks"][0]["cells"][2].pop("samples"),
        lambda d: d["plan"]["divisor"].update(kind="thread"),
        lambda d: d.update(sha256="0"),
    ],
)
def test_a_broken_run_does_not(validator: Draft202012Validator, change: Any) -> None:
    document = made_run(2)
    change(document)
    assert not validator.is_valid(document)
