"""Recordings of numbers: made of small calls in this process, read and compared."""

import json

import msgspec
import pytest
from cli_runs import Cli

from traceview.collectors.child.config import Config
from traceview.collectors.child.frames import Frames
from traceview.compare import recorded as form
from traceview.compare import recordings
from traceview.compare.recorded import Tensor, apart, read
from traceview.compare.recordings import compare, environments
from traceview.errors import NothingToAnalyse
from traceview.run import Manifest, Run

FOLDER = "accuracy"


@pytest.fixture(scope="module", autouse=True)
def import_torch():
    """Here, since it takes seconds of every worker that collects this module."""
    global torch, recording, operators
    torch = pytest.importorskip("torch")
    from traceview.collectors.child import operators, recording

    with torch.library._scoped_library("tested", "DEF") as library:
        library.define("tanh(Tensor x, float wrong, int? place) -> Tensor")
        library.impl("tanh", tanh, "CompositeExplicitAutograd")
        yield


def tanh(x, wrong, place):
    made = x.tanh()
    made.view(-1)[slice(None) if place is None else place] += wrong
    return made


def mix(x, w, *, wrong=0.0, place=None, extra=False):
    hidden = x.mm(w)
    if extra:
        hidden = hidden.neg().neg()
    hidden = torch.ops.tested.tanh(hidden, wrong, place)
    return hidden.sum(0)


def start(folder, what="calls", stance=None, record_mb=64, **environment):
    config = Config(run=folder, raw=folder, record_mb=record_mb, **environment)
    folder.mkdir(exist_ok=True)
    return recording.Recording(torch, config, what, stance)


def recorded(folder, call=mix, seed=0, size=(64, 8), record_mb=64, compiled=None, **how):
    """The path of a recording of one call, eager's results and operators; with ``compiled``'s."""
    made = start(folder, record_mb=record_mb)
    generator = torch.Generator().manual_seed(seed)
    inputs = {
        "argument x": torch.randn(size, generator=generator),
        "w": torch.randn((size[1], 16), generator=generator),
    }
    keys = {"name": "mix", "file": "/u/net.py", "line": 3, "why": None, "compiled_why": None}
    made.write("call", call=0, draws=False, weights="first", **keys)
    for name, value in inputs.items():
        made.result(0, "input", name, value)
    exact = operators.Doubled(torch)
    with exact:
        mix(*(each.double() for each in inputs.values()))
    made.result(0, "eager", "output", call(*inputs.values(), **how))
    made.result(0, "compiled", "output", (compiled or call)(*inputs.values(), **how))
    with operators.Noted(torch, Frames(torch.__file__, "/"), made, 0, exact):
        call(*inputs.values(), **how)
    made.close()
    return next(folder.joinpath(FOLDER).iterdir())


def between(one, other, noise=None):
    found = compare(read(one), read(other), noise and read(noise))
    return found, [(row["what"], row["operator"] or row["name"]) for row in found.differences]


def test_both_halves_compare_alike():
    """A script's process imports nothing of ours, so each half has its own copy of these."""
    from traceview.collectors.child import trial

    assert form._TOLERANCES == trial.TOLERANCES
    assert (form._TOLERANCE, form._ALONE) == (trial.TOLERANCE, trial._ALONE)
    assert recordings._LEAST_SHARE == trial._LEAST_SHARE
    assert recordings._SORTING == operators._SORTING


def test_what_is_the_same_agrees(tmp_path):
    found, wrong = between(recorded(tmp_path / "a"), recorded(tmp_path / "b"))
    assert (wrong, found.not_compared) == ([], [])
    (one,) = found.callables
    assert (one["inputs"], one["operators"], one["first"]) == ("equal", 3, None)
    assert environments(read(recorded(tmp_path / "a")), read(recorded(tmp_path / "b"))) == []


def test_roundings_are_no_difference(tmp_path):
    def otherwise(x, w):
        return tanh((w.flip(0).t() @ x.flip(1).t()).t().contiguous(), 0.0, None).flip(0).sum(0)

    a = recorded(tmp_path / "a")
    b = recorded(tmp_path / "b", otherwise)
    one, other = (read(path).results[0, "eager"]["output"].tensor for path in (a, b))
    assert read(a).tensors[one].digest != read(b).tensors[other].digest
    assert between(a, b)[1] == []


@pytest.mark.parametrize("extra", [False, True])
def test_the_first_operator_that_differs_is_named(tmp_path, extra):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b", wrong=0.01, extra=extra)
    found, wrong = between(a, b)
    assert wrong[0] == ("operator", "tested.tanh")
    first = found.callables[0]["first"]
    assert first["location"]["file"] == __file__
    assert first["unpaired"] == (["B: aten.neg", "B: aten.neg"] if extra else [])
    worst = found.differences[0]["worst"]
    assert worst["b"] - worst["a"] == pytest.approx(0.01, rel=1e-3)
    assert found.differences[0]["eager_error"] < 1e-5 < found.differences[0]["relative_error"]
    assert wrong[1:] == [("output", "tested.tanh")]  # and where that shows


def test_an_element_that_is_in_no_sample_is_seen_by_sums(tmp_path):
    shape, place = (1000, 8), 777
    a = recorded(tmp_path / "a", size=shape)
    assert place not in read(a).places[16000]
    b = recorded(tmp_path / "b", size=shape, wrong=0.5, place=place)
    assert between(a, b)[1][0] == ("operator", "tested.tanh")


def test_other_inputs_are_the_first_difference_and_nothing_after_them_is_blamed(tmp_path):
    found, wrong = between(recorded(tmp_path / "a"), recorded(tmp_path / "b", seed=1, wrong=1.0))
    assert wrong == [("input", "argument x"), ("parameter", "w")]
    assert [row["reason"] for row in found.not_compared] == [
        "its inputs differ, so nothing after them is compared"
    ]


def test_compiled_is_compared_with_the_other_ones_eager(tmp_path):
    a = recorded(tmp_path / "a")
    b = recorded(tmp_path / "b", compiled=lambda x, w: mix(x, w) * 1.5)
    assert [row["sides"] for row in between(a, b)[0].differences] == ["eager of A, compiled of B"]
    assert [row["sides"] for row in between(b, a)[0].differences] == ["compiled of A, eager of B"]


def test_random_operators_are_not_blamed(tmp_path):
    def drops(x, w):
        return torch.nn.functional.dropout(x, 0.5).mm(w)

    torch.manual_seed(0)
    a, b = recorded(tmp_path / "a", drops), recorded(tmp_path / "b", drops)
    found, wrong = between(a, b)
    assert wrong == []
    assert "draws other random numbers" in found.not_compared[0]["reason"]


def test_ties_are_not_blamed(tmp_path):
    def ranks(x, w):
        x = x.clone()
        x[:, 1] = x[:, 0] * (1 + OTHER * 1e-7)  # roundings decide
        return x[:, :2].argmax(1).float()

    def last(x, w):
        return ranks(x, w).long()

    for call, excluded in ((ranks, "so nothing after that"), (last, "ties: places of values")):
        for name, other in (("a", -1), ("b", 1)):
            OTHER = other
            path = recorded(tmp_path / f"{name}{call.__name__}", call)
        found, wrong = between(next((tmp_path / f"a{call.__name__}" / FOLDER).iterdir()), path)
        assert wrong == []
        assert excluded in found.not_compared[0]["reason"]


def described(value):
    flat = recording.flattened(torch, value)
    keys = {"dtype": str(value.dtype)[6:], "shape": list(value.shape), "strides": None}
    keys |= {"digest": recording.digest(flat), "device": "cpu", "elements": flat.numel()}
    return msgspec.convert(
        {"kind": "tensor", "tensor": 0, **recording.statistics(torch, flat), **keys}, Tensor
    )


def test_tensors_that_have_other_kinds_of_values():
    x = torch.tensor([1.0, float("nan"), float("inf")])
    assert apart(described(x), described(x.clone())) is None
    assert "1 NaN" in apart(described(x), described(torch.ones(3))).reason
    assert "float64[3], in B" in apart(described(x.double()), described(x)).reason
    whole = torch.tensor([1, 2, 3])
    assert "1 of 3" in apart(described(whole), described(torch.tensor([1, 2, 4]))).reason
    z = torch.ones(2, 2, dtype=torch.complex64)
    other = z.clone()
    other[1, 0] += 1j
    assert apart(described(z), described(other)).worst == ([1, 0, 1], 0.0, 1.0)
    assert apart(described(torch.tensor(0.0)), described(torch.tensor(-0.0))) is None
    assert apart(described(torch.empty(0)), described(torch.empty(0))) is None
    noise, other = described(torch.tensor(1e-7)), described(torch.tensor(-3e-7))
    noise.error, other.error = 1e-7, 3e-7  # of what should be 0
    assert apart(noise, other) is None
    noise.error = 0.0
    assert apart(noise, other).relative_error == pytest.approx(4 / 3)
    sparse = torch.eye(3).to_sparse()
    assert recording.flattened(torch, sparse).numel() == 9


def test_what_does_not_fit_is_counted(tmp_path):
    config = Config(run=tmp_path, raw=tmp_path, record_mb=1)
    made = recording.Recording(torch, config, "calls")
    values = [made.tensor(torch.full((64,), float(n))) for n in range(2000)]
    made.close()
    kept = [each for each in values if each is not None]
    assert 500 < len(kept) < 2000
    path = next((tmp_path / FOLDER).iterdir())
    assert path.stat().st_size <= 1_000_100
    assert path.stat().st_mode & 0o777 == 0o600
    found = read(path)
    assert len(found.tensors) == len(kept)
    assert found.left_out == {"tensor": 2000 - len(kept)}
    assert f"{2000 - len(kept)} tensor rows did not fit" in next(found.missing())


@pytest.mark.parametrize(
    "line",
    [
        "no json", '{"kind": "tensor"}', '{"kind": "operator", "call": 0}', "[" * 5000, "\0\xff",
        '{"kind": "places", "elements": 9, "at": [' + "9" * 400 + "]}",
        '{"kind": "end", "left_out": {"x": "y"}}', '{"kind": "pickle"}', "{}",
    ],
)  # fmt: skip
def test_damaged_rows_are_counted_and_the_rest_is_read(tmp_path, line):
    path = recorded(tmp_path / "a")
    rows = path.read_text().splitlines()
    rows.insert(len(rows) // 2, line)
    path.write_text("\n".join(rows))
    found, wrong = between(path, recorded(tmp_path / "b"))
    assert wrong == []
    assert found.not_compared[0]["reason"] == "A: 1 rows of the recording are damaged"


def test_recordings_that_were_cut_off(tmp_path, limit):
    path = recorded(tmp_path / "a")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    reasons = [row["reason"] for row in between(path, path)[0].not_compared]
    assert "A: the end of the recording is missing" in reasons
    path.write_bytes(whole)
    limit(memory=len(whole) * 2)
    assert not read(path).whole
    path.write_bytes(whole.split(b"\n", 1)[1])
    with pytest.raises(NothingToAnalyse, match="no recording of numbers"):
        read(path)


def test_hostile_numbers_end_in_an_answer(tmp_path):
    path = recorded(tmp_path / "a")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["kind"] == "tensor":
            row |= {"values": [1e308, -1e308], "sums": [1e308], "rms": 1e308, "digest": "x"}
            row |= {"error": -1.0, "elements": 1 << 61, "shape": [0, 1 << 61]}
    path.write_text("\n".join(map(json.dumps, rows)))
    assert between(path, recorded(tmp_path / "b"))[1][0] == ("input", "argument x")


# -- training steps --------------------------------------------------------------------------------


def curve(folder, stance, losses, weight=1.0, data=1.0):
    made = start(folder, "steps", stance)
    made.result(0, "input", "w", torch.ones(4))
    for n, loss in enumerate(losses):
        inputs = [made.tensor(torch.full((3,), data + n))]
        made.write("step", step=n, inputs=inputs, losses=[recording.short(loss)], low=False)
    made.result(0, "end", "w", torch.full((4,), weight))
    made.close()
    return next(folder.joinpath(FOLDER).glob(f"{stance}-*"))


def test_loss_curves_part_beyond_what_nudged_weights_do(tmp_path):
    eager = curve(tmp_path, "eager", [1.0, 0.5, 0.25])
    nudged = curve(tmp_path, "nudged", [1.0, 0.501, 0.26], 1.001)
    near = curve(tmp_path / "n", "compiled", [1.0, 0.503, 0.27], 1.005)
    assert between(eager, near, nudged)[1] == []
    assert between(eager, near)[1] == [("loss", "loss of step 2"), ("parameter", "w after step 3")]
    far = curve(tmp_path / "f", "compiled", [1.0, 0.503, 0.5], 1.1)
    found, wrong = between(eager, far, nudged)
    assert wrong == [("loss", "loss of step 3"), ("parameter", "w after step 3")]
    assert found.differences[0]["worst"] == {"element": [2], "a": 0.25, "b": 0.5}
    nan = curve(tmp_path / "x", "compiled", [1.0, float("nan"), 0.25])
    assert between(eager, nan, nudged)[0].differences[0]["reason"].startswith("NaN")


def test_other_data_are_excluded(tmp_path):
    a = curve(tmp_path / "a", "eager", [1.0, 0.5])
    b = curve(tmp_path / "b", "compiled", [2.0, 0.1], data=3.0)
    found, wrong = between(a, b)
    assert (wrong, found.callables) == ([], [])
    assert found.not_compared[0]["reason"] == "excluded: the data differ from step 1 on"


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


def run(folder, **how):
    Run.create(folder, Manifest())
    return recorded(folder, **how)


def test_two_runs(cli, tmp_path):
    a, b, c = (tmp_path / name for name in "abc")
    run(a)
    run(b)
    run(c, wrong=0.01)
    cli("accuracy", a, b)
    assert (cli.code, cli.out.splitlines()[0]) == (0, "The recordings agree.")
    cli("accuracy", a, c)
    assert cli.code == 1
    assert "First to differ: tested.tanh at test_recordings.py:" in cli.out
    cli("accuracy", "--json", a, c)
    answer = json.loads(cli.out)
    assert (answer["format"], answer["verdict"]) == (1, "differ")
    assert answer["pairs"] == [{"a": "a", "b": "c"}]
    assert answer["differences"][0]["operator"] == "tested.tanh"
    cli("accuracy", a)
    assert (cli.code, "no two recordings" in cli.err) == (4, True)
    cli("accuracy", a, b, c)
    assert cli.code == 2
    cli("accuracy", a, "train.py")
    assert cli.code == 2
    Run.create(tmp_path / "empty", Manifest())
    cli("accuracy", a, tmp_path / "empty")
    assert (cli.code, "has no recording of numbers" in cli.err) == (4, True)


def test_ranks_of_a_run_are_compared_with_the_first(cli, tmp_path, monkeypatch):
    for rank, wrong in enumerate((0.0, 0.0, 0.1)):
        monkeypatch.setenv("RANK", str(rank))
        made = run(tmp_path / f"r{rank}", wrong=wrong)
        (tmp_path / "job" / FOLDER).mkdir(parents=True, exist_ok=True)
        made.rename(tmp_path / "job" / FOLDER / made.name)
    Run.create(tmp_path / "job", Manifest())
    cli("accuracy", tmp_path / "job")
    assert (cli.code, cli.out.splitlines()[0]) == (1, "1 of 2 pairs of recordings differ.")
    _, agrees, differs = cli.out.split("\n\n")
    assert agrees.startswith("A is rank 0, B is rank 1.")
    assert differs.startswith("A is rank 0, B is rank 2.")
    assert "tested.tanh" in differs
    assert "tested.tanh" not in agrees
