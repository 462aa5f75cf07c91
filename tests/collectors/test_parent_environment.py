"""What a pass's environment holds."""

from pathlib import Path

from traceview.collectors.passes import LOGS, for_pass, merged_logs, user_logs
from traceview.collectors.probe import Target

KNOWN = frozenset(LOGS)
RAW, CACHE = Path("/run/raw/cold"), Path("/run/cache")


def target(**changes):
    facts = {
        "python": "/usr/bin/python3",
        "torch_version": "2.11.0",
        "log_names": KNOWN,
        "switches": frozenset({"INDUCTOR_PROVENANCE"}),
        "script_root": "/home",
    }
    return Target(**{**facts, **changes})


def test_logs_are_only_names_that_the_targets_torch_knows():
    assert merged_logs(None, frozenset({"fusion", "graph_breaks"})) == "graph_breaks,fusion"
    assert merged_logs(None, frozenset()) == ""


def test_the_users_own_logs_come_first_and_keep_their_signs():
    merged = merged_logs("+dynamo, -graph_breaks", frozenset({"graph_breaks", "fusion"}))
    assert merged == "+dynamo, -graph_breaks,fusion"
    assert user_logs("+dynamo, -graph_breaks") == ["+dynamo", "-graph_breaks"]


def test_what_torch_would_refuse_is_passed_on_alone():
    for own in ("help", "+help", "dynamo;aot", "a b"):
        assert merged_logs(own, KNOWN) == own


def test_an_empty_torch_logs_counts_as_none():
    assert merged_logs("", frozenset({"fusion"})) == "fusion"


def test_private_places_replace_the_users_and_are_said():
    user = {"TORCH_TRACE": "/mine", "TORCHINDUCTOR_CACHE_DIR": "/c", "TORCH_LOGS_FORMAT": "short"}
    made = for_pass(user, target(), RAW, CACHE)
    assert made.variables["TORCH_TRACE"] == "/run/raw/cold/structured"
    assert made.variables["TORCHINDUCTOR_CACHE_DIR"] == "/run/cache/inductor"
    assert "TORCH_LOGS_FORMAT" not in made.variables
    assert [note.split()[0] for note in made.notes] == [
        "TORCH_TRACE=/mine",
        "TORCHINDUCTOR_CACHE_DIR=/c",
        "TORCH_LOGS_FORMAT",
    ]


def test_nothing_else_of_the_users_is_touched():
    user = {"HOME": "/h", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "INDUCTOR_PROVENANCE": "0"}
    made = for_pass(user, target(), RAW, CACHE)
    assert user.items() <= made.variables.items()
    assert "PYTHONUNBUFFERED" not in made.variables
    assert made.notes == ()


def test_torch_dtrace_would_win_so_it_leads_to_the_same_folder():
    made = for_pass({"TORCH_DTRACE": "/d"}, target(), RAW, CACHE)
    assert made.variables["TORCH_DTRACE"] == made.variables["TORCH_TRACE"]


def test_a_switch_that_this_torch_does_not_read_is_not_set():
    assert for_pass({}, target(), RAW, CACHE).ours["INDUCTOR_PROVENANCE"] == "1"
    assert "INDUCTOR_PROVENANCE" not in for_pass({}, target(switches=frozenset()), RAW, CACHE).ours


def test_ranges_inside_kernels_are_asked_for_only_where_cpp_calls_the_kernels():
    name = "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"
    known = target(switches=frozenset({"INDUCTOR_PROVENANCE", name}))
    assert name not in for_pass({}, known, RAW, CACHE).ours
    assert for_pass({"TORCHINDUCTOR_CPP_WRAPPER": "1"}, known, RAW, CACHE).ours[name] == "1"


def test_the_bootstrap_folder_comes_before_the_users_pythonpath():
    path = for_pass({"PYTHONPATH": "/a:/b"}, target(), RAW, CACHE).ours["PYTHONPATH"]
    first, rest = path.split(":", 1)
    assert [entry.name for entry in Path(first).glob("*.py")] == ["sitecustomize.py"]
    assert rest == "/a:/b"
    assert ":" not in for_pass({}, target(), RAW, CACHE).ours["PYTHONPATH"]
