import pytest

from cpubench.errors import UsageError
from cpubench.power.levels import External, Level, parse_external, parse_level, parse_watts, share_uw, total_w


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("250W", Level("250W", watts=250)),
        (" 250.5 w ", Level("250.5W", watts=250.5)),
        ("70%", Level("70%", percent=70)),
        ("100 %", Level("100%", percent=100)),
        ("As-Is", Level("as-is")),
        ("proxy:freq=2.4GHz", Level("proxy:freq=2.4GHz", khz=2_400_000)),
        ("proxy:freq=800MHz", Level("proxy:freq=800MHz", khz=800_000)),
    ],
)
def test_levels(text, level):
    assert parse_level(text) == level


@pytest.mark.parametrize(
    "text",
    ["", "250", "0W", "0.0W", "-5W", "nanW", "infW", "1e3W", "1_0W", "٣W", "0%", "101%", "-1%", "nan%", "W", "%",
     "asis", "250kW", "100001W", "999999999999W", "250W 70%", "\x1b[31m5W", "proxy:freq=0GHz",
     "proxy:quota=1", "x" * 99],
)  # fmt: skip
def test_no_levels(text):
    with pytest.raises(UsageError) as told:
        parse_level(text)
    assert (told.value.code, told.value.where) == ("level", "--cap")
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 160


@pytest.mark.parametrize(("text", "watts"), [("250", 250), ("250W", 250), ("0.5", 0.5)])
def test_watts_may_be_without_their_unit(text, watts):
    assert parse_watts(text, "--watts") == watts


@pytest.mark.parametrize("text", ["70%", "as-is", "", "0", "-1", "nan", "1W W", "100001"])
@pytest.mark.parametrize("parse", [parse_watts, parse_external])
def test_what_is_no_watts_is_told_as_it_was_given_and_no_level_is_offered(parse, text):
    with pytest.raises(UsageError, match=r"^--watts: ") as told:
        parse(text, "--watts")
    assert told.value.text.startswith(repr(text))
    assert not any(word in told.value.text.removeprefix(repr(text)) for word in ("cap level", "as-is", "%"))


def test_every_form_of_a_level_is_offered():
    with pytest.raises(UsageError) as told:
        parse_level("nope")
    assert all(form in told.value.text for form in ("250W", "70%", "as-is", "proxy:freq=2.4GHz"))


def test_a_per_cent_is_of_the_measured_power_and_needs_a_meter():
    assert total_w(Level("70%", percent=70), 300) == 210
    assert total_w(Level("as-is"), 300) is None
    with pytest.raises(UsageError, match="needs a meter"):
        total_w(Level("70%", percent=70), None)


def test_a_total_is_shared_by_the_zones_and_rounded_down_to_the_register():
    assert share_uw(501, 2, 125_000, None, None) == 250_500_000
    assert share_uw(500.9, 2, 125_000, None, None) == 250_375_000
    assert share_uw(100, 3, 1000, None, None) == 33_333_000


@pytest.mark.parametrize(
    ("watts", "bounds", "text"),
    [
        (800, {}, "above the maximum of 350 W"),
        (20, {}, "below the minimum of 50 W"),
        (0.2, {}, "less than the 0.125 W"),
        (120, {"idle_w": 130.0}, "below the idle power of 130.0 W"),
    ],
)
def test_a_cap_that_zones_cannot_take_is_refused(watts, bounds, text):
    with pytest.raises(UsageError, match=text):
        share_uw(watts, 2, 125_000, 50_000_000, 350_000_000, **bounds)


@pytest.mark.parametrize(
    ("text", "cap"),
    [
        ("600W", External(600, "wall")),
        ("600", External(600, "wall")),
        (" 250 w:package ", External(250, "package")),
        ("0.5W:module", External(0.5, "module")),
    ],
)
def test_a_cap_from_outside_says_what_it_limits(text, cap):
    assert parse_external(text) == cap
    assert parse_external(cap.text) == cap


@pytest.mark.parametrize("text", ["600W:", "600W:psys", "600W:package+dram", "600W:wall:wall", ":wall", "70%:wall", ""])
def test_a_cap_from_outside_of_no_scope_is_refused(text):
    with pytest.raises(UsageError, match="--cap-external: ") as caught:
        parse_external(text)
    assert "\n" not in str(caught.value)
