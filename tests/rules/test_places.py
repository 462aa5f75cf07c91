"""Whose line it is: stacks as torch 2.13 logs them, with wrappers and libraries of every kind."""

import json

import pytest

from traceview.derive.facts.places import Location, Owners, Spot, in_torch
from traceview.rules import gb_item

LIB = "/env/lib/python3.11"
TORCH = f"{LIB}/site-packages/torch"
ME = "/home/me/train.py"
GATE = f"{LIB}/site-packages/traceview/collectors/child/gate.py:49:call"
MODULE = [f"{TORCH}/nn/modules/module.py:1778:_wrapped_call_impl",
          f"{TORCH}/nn/modules/module.py:1789:_call_impl"]  # fmt: skip


def frames(*texts):
    """``file:line:function`` each, outermost first."""
    parts = (text.rsplit(":", 2) for text in texts)
    return json.dumps([{"file": f, "line": int(n), "function": name} for f, n, name in parts])


def broken(*stack, key="k", **columns):
    return {"compile_key": key, "user_stack": frames(*stack), "user_file": None, "user_line": None,
            "user_function": None, **columns}  # fmt: skip


def code(file, line, name, *stack, key="k", **columns):
    return {"compile_key": key, "co_filename": file, "co_firstlineno": line, "co_name": name,
            "stack": frames(*stack) if stack else None, **columns}  # fmt: skip


def at(line, function, file=ME):
    return Location(file, line, function)


CASES = {
    "a module hook is the user's own": (
        [f"{ME}:25:<module>", *MODULE, GATE, *MODULE, f"{ME}:18:forward", MODULE[0],
         f"{TORCH}/nn/modules/module.py:1845:inner", f"{ME}:8:keep_peak"],
        Spot(at(8, "keep_peak")),
    ),
    "contextlib around a manager of the user's": (
        [f"{ME}:36:<module>", GATE, f"{TORCH}/_dynamo/external_utils.py:69:inner",
         f"{ME}:19:wrapper", f"{ME}:28:score", f"{LIB}/contextlib.py:111:__init__",
         f"{ME}:13:section"],
        Spot(at(13, "section")),
    ),
    "contextlib itself": (
        [f"{ME}:36:<module>", f"{ME}:28:score", f"{LIB}/contextlib.py:137:__enter__"],
        Spot(at(28, "score"), at(137, "__enter__", f"{LIB}/contextlib.py")),
    ),
    "a decorator of the user's": (
        [f"{ME}:36:<module>", f"{TORCH}/_dynamo/external_utils.py:69:inner", f"{ME}:20:wrapper"],
        Spot(at(20, "wrapper")),
    ),
    "a lambda": ([f"{ME}:36:<module>", f"{ME}:30:<lambda>"], Spot(at(30, "<lambda>"))),
    "a library that the user calls": (
        [f"{ME}:27:<module>", GATE, f"{ME}:17:forward",
         f"{LIB}/site-packages/metricslib/__init__.py:6:watch"],
        Spot(at(17, "forward"), at(6, "watch", f"{LIB}/site-packages/metricslib/__init__.py")),
    ),
    "a library of the distribution's": (
        [f"{ME}:27:<module>", f"{ME}:17:forward",
         "/usr/lib/python3/dist-packages/einops/core.py:88:rearrange"],
        Spot(at(17, "forward"),
             at(88, "rearrange", "/usr/lib/python3/dist-packages/einops/core.py")),
    ),
    "a library that was compiled itself": (
        [f"{ME}:27:main", GATE, f"{TORCH}/_dynamo/external_utils.py:69:inner",
         f"{LIB}/site-packages/lib/net.py:6:call"],
        Spot(at(27, "main"), at(6, "call", f"{LIB}/site-packages/lib/net.py")),
    ),
    "DistributedDataParallel": (
        [f"{ME}:50:main", *MODULE, f"{TORCH}/nn/parallel/distributed.py:1633:forward",
         f"{LIB}/contextlib.py:137:__enter__"],
        Spot(at(50, "main"), at(137, "__enter__", f"{LIB}/contextlib.py")),
    ),
    "code behind a graph break has its function's name": (
        [f"{ME}:27:main", f"{ME}:16:torch_dynamo_resume_in_forward_at_15"],
        Spot(at(16, "forward")),
    ),
    "functools": (
        [f"{ME}:27:main", f"{ME}:9:area", f"{LIB}/functools.py:909:wrapper"],
        Spot(at(9, "area"), at(909, "wrapper", f"{LIB}/functools.py")),
    ),
    "a torch that was built from source": (
        [f"{ME}:27:main", "/src/pytorch/torch/_dynamo/external_utils.py:69:inner", f"{ME}:3:f",
         "/src/pytorch/torch/nn/functional.py:1500:relu"],
        Spot(at(3, "f"), at(1500, "relu", "/src/pytorch/torch/nn/functional.py")),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("stack", "spot"), CASES.values(), ids=CASES)
def test_the_first_line_of_the_users_own(make, stack, spot):
    assert Owners(make()).spot(broken(*stack)) == spot


def test_a_text_log_that_quotes_only_the_library_is_led_back_by_its_compile(make):
    inside = f"{LIB}/site-packages/lib/net.py"
    outer = code(inside, 4, "call", f"{ME}:27:main", GATE, f"{inside}:4:call")
    spot = Owners(make(compiles=[outer])).spot(broken(f"{inside}:6:call"))
    assert spot == Spot(at(27, "main"), at(6, "call", inside))


def test_without_a_stack_the_rows_own_line_counts(make):
    row = broken() | {"user_file": ME, "user_line": 9, "user_function": "f"}
    assert Owners(make()).spot(row) == Spot(at(9, "f"))
    assert Owners(make()).spot(row | {"user_stack": "{broken"}) == Spot(at(9, "f"))
    assert Owners(make()).spot(broken()) == Spot(None)


def test_files_that_the_run_kept_are_the_users_wherever_they_lie(make):
    """As with ``-m package``, where the package is installed."""
    package = f"{LIB}/site-packages/mine"
    stack = [f"{package}/train.py:9:main", f"{package}/layers.py:5:forward",
             f"{LIB}/site-packages/other/x.py:1:f"]  # fmt: skip
    assert Owners(make()).spot(broken(*stack)) == Spot(None)
    kept = Owners(make(sources=[{"file": f"{package}/train.py"}]))
    assert kept.spot(broken(*stack)).place == at(5, "forward", f"{package}/layers.py")


def test_the_code_object_of_a_library_is_led_to_the_call(make):
    sgd = f"{TORCH}/optim/sgd.py"
    row = code(sgd, 105, "step", f"{ME}:19:<module>", f"{ME}:11:update", f"{sgd}:105:step")
    owners = Owners(make(compiles=[row]))
    assert owners.code(row) == Spot(at(11, "update"), at(105, "step", sgd))
    named = {name: row[name] for name in row if name != "stack"}
    assert owners.code(named) == owners.code(row), "by its key"
    assert owners.code(code(ME, 9, "update")) == Spot(at(9, "update"))


def test_what_torch_does_by_itself_is_not_the_users(make):
    optimizer = f"{TORCH}/optim/optimizer.py"
    stack = [f"{ME}:19:<module>", f"{ME}:11:update", f"{optimizer}:530:wrapper",
             f"{optimizer}:79:_use_grad"]  # fmt: skip
    wrapper = Owners(make(compiles=[code(optimizer, 509, "wrapper")]))
    assert wrapper.is_torchs(broken(*stack)), "none of the user's code was traced"
    update = Owners(make(compiles=[code(ME, 9, "update")]))
    assert not update.is_torchs(broken(*stack))


def test_a_break_is_about_the_code_behind_it(make):
    forward = code(ME, 14, "forward")
    behind = code(ME, 16, "torch_dynamo_resume_in_forward_at_16", key="r")
    row = broken(f"{ME}:29:main", f"{ME}:16:forward")
    assert Owners(make(compiles=[forward, behind])).about(row) == {f"{ME}:16"}
    assert Owners(make(compiles=[forward])).about(row) == {f"{ME}:14"}
    assert Owners(make()).about(row) == frozenset()


@pytest.mark.parametrize(
    ("file", "torchs"),
    [
        (f"{TORCH}/optim/sgd.py", True),
        ("/usr/lib/python3/dist-packages/torch/nn/functional.py", True),
        ("/src/pytorch/torch/_dynamo/eval_frame.py", True),
        ("/home/me/torch/train.py", False),
        (f"{LIB}/site-packages/torchvision/ops/boxes.py", False),
    ],
)
def test_torchs_own_files(file, torchs):
    assert in_torch(Location(file, 1)) is torchs


def test_no_place_is_not_torchs():
    assert not in_torch(None)


@pytest.mark.parametrize(
    ("run", "inside"),
    [
        ("bad-gb_item_library", "site-packages/metricslib/__init__.py"),
        ("bad-gb_item_hook", None),
        ("bad-gb_item", None),
    ],
)
def test_recorded_breaks_name_the_librarys_line_too(run, inside, tables_of):
    (finding,) = gb_item.check(tables_of(run))
    assert finding.location.file.endswith(f"{run.removeprefix('bad-')}.py")
    assert (inside is None) == (finding.inside is None)
    assert inside is None or finding.inside.file.endswith(inside)
    assert "`.item()`" in finding.title
