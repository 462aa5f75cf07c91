"""Do the results agree? Runs kept calls again, eager and compiled, and writes how far they differ.

At the process's end, when nothing is measured or logged any more. Of one call, in this order:
eager twice, in float64, compiled as the user asked. Only where compiled is beyond the tolerance:
eager with its inputs a rounding up or down, compiled with eager's random numbers, and then one
stage of the compiler after the other (the ladder), with eager's random numbers and roundings, up to
the first whose result is wrong. Results are outputs, gradients, what the call wrote into its
arguments, weights and buffers, and how outputs lie in memory.

Two results agree by the criterion of ``torch._dynamo.utils.same``: elements are close, or the root
mean square error (RMSE) against a reference in float64 is at most 2 times eager's (3 times below
1,000 elements and in low precision) plus a tenth of the tolerance. Three things differ. The
tolerance is of the reference's own root mean square, not of 1: gradients have no size of their own.
How far eager moves by a rounding of its inputs is added. And whole numbers are equal where the
values that they are indices of are (ties), or where eager's own change so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .config import COMPARING_S
from .driver import Parts
from .logs import nothing_shown
from .operators import Sorted
from .remedies import Trial
from .replay import GRADIENT, LAYOUT, NotCompared, Replay, rms_of, same_state
from .stances import CodeUsed
from .taken import Taken, Taker

RUNGS = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
#: Whatever draws other random numbers in float64 than in its own precision is no reference.
_OTHER_NUMBERS = 0.1
_UNSEEN = (
    "none of its calls was seen during the watched steps; calls inside another compiled callable "
    "or in another thread are not compared"
)
_ABSENT = object()

#: Tolerances of torch's own benchmarks for results in these precisions.
TOLERANCES = {"float64": 1e-6, "complex128": 1e-6, "bfloat16": 1e-2, "float16": 1e-2}
TOLERANCE = 1e-4
_LOW = ("bfloat16", "float16")
_FEW = 1000  # elements: below, noise weighs more, and torch allows 3 times eager's error
#: Without a reference in float64 the difference itself is judged, of two errors instead of one.
_ALONE = 3.0
#: Part of the elements of an integer tensor that may differ, on top of three times eager's own.
_WHOLE_SHARE = 0.01
#: Part of the largest values of the same kind below which a result counts as no larger: what should
#: be 0 (the gradient of a bias before a normalization) is the roundings of these.
_LEAST_SHARE = 0.1
_NUDGES = 2
_TIES = "equal values in another order (ties)"
Outputs = Mapping[str, Any]


def compare_outputs(
    parts: Parts,
    taker: Taker,
    remedies: Sequence[Trial] = (),
    *,
    bisect_s: float = 0.0,
    folder: Path = Path(),
) -> None:
    """One ``output_trial`` event for each callable that was called, and its ``output_check``s.

    With ``remedies`` each of them is compared, too, instead of the stages of the compiler. With
    ``bisect_s`` what is wrong is followed to its operator, within these seconds for all callables:
    ``output_fault`` events, and scripts in ``folder``.
    """
    until = time.monotonic() + COMPARING_S
    left_s = bisect_s
    parts.stances.take("compiled")
    for region in parts.control.regions:
        if not region.first_called:
            continue
        taken = taker.taken.pop(region.region_id, None)
        why = taker.left_out.get(region.region_id, None if taken else _UNSEEN)
        keys: dict[str, Any] = {"compared": False, "why": why}
        comparison = None
        if taken is not None and why is None:
            comparison = _Comparison(parts, taken, until, remedies)
            with nothing_shown():
                keys = comparison.carry_out()
        parts.recorder.write("output_trial", region_id=region.region_id, **keys)
        if bisect_s and comparison is not None and comparison.failing:
            began = time.monotonic()
            with nothing_shown():
                comparison.bisect(began + left_s, folder)
            spent_s = time.monotonic() - began
            left_s, until = left_s - spent_s, until + spent_s


class _Comparison:
    """One callable."""

    def __init__(self, parts: Parts, taken: Taken, until: float, remedies: Sequence[Trial]) -> None:
        self._torch = parts.torch
        self._remedies = remedies
        self._trial: str | None = None
        self._recorder, self._frames = parts.recorder, parts.frames
        self._taken = taken
        self._own: Any = taken.how.get("backend") or "inductor"
        self._until = until
        # A remedy may lay out memory as it likes.
        self._replay = Replay(parts.torch, taken, parts.frames, layouts=not remedies)
        self._sorted = Sorted(parts.torch)
        self._eager: Outputs = {}
        self._exact: Outputs = {}
        self._least: tuple[float | None, float | None] = None, None  # of outputs, of gradients
        self._spread: dict[str, float] = {}
        self._flips: dict[str, int] = {}
        self._nudged = bool(remedies)
        self._again: dict[str, dict[str, Any]] = {}
        self._names: frozenset[str] = frozenset()  # of what was wrong in the last run
        # What is wrong: backend, the one before it, torch.compile's arguments, configuration.
        self.failing: tuple[Any, str | None, Mapping[str, Any], Mapping[str, Any]] | None = None

    def carry_out(self) -> dict[str, Any]:
        """Everything; the keys of the ``output_trial`` event."""
        began = time.monotonic()
        keys: dict[str, Any] = {"compared": True, "why": None}
        try:
            keys |= self._compare()
        except NotCompared as why:
            keys |= {"compared": False, "why": str(why)}
        except Exception as error:  # noqa: BLE001 - the user's code, run on copies
            keys |= {"compared": False, "why": reason_of(error)}
        finally:
            self._replay.put_back()
        keys |= {"gradients_why": self._replay.ungraded, "draws_random": self._replay.draws}
        return {**keys, "seconds": time.monotonic() - began}

    def _compare(self) -> dict[str, Any]:
        replay = self._replay
        replay.check_room()
        self._eager = replay.run()
        if not any(isinstance(each, self._torch.Tensor) for each in self._eager.values()):
            raise NotCompared("it returns no tensor and writes to none of its arguments")
        state = replay.state
        missing = self._reference()
        keys: dict[str, Any] = {
            "reference": None if missing else "float64",
            "reference_why": missing,
            "gradients": any(name.startswith(GRADIENT) for name in self._eager),
        }
        if not self._remedies:
            self._least = self._sizes()
        self._look("eager_again", None, self._in_time(lambda: replay.run(watch=self._sorted)))
        # Code that draws what eager draws has to be new code.
        drawn = {"fallback_random": True} if self._remedies and replay.draws else {}
        if drawn or replay.scattered:
            self._torch._dynamo.reset()
        used = CodeUsed()
        known = not (self._remedies or replay.scattered) and used.begin()
        try:
            compiled = self._in_time(lambda: self._compiled(self._taken.how, **drawn))
        finally:
            skipped = known and not used.end()
        if skipped:  # perhaps eager, after too many recompiles
            self._torch._dynamo.reset()
            compiled = self._in_time(lambda: self._compiled(self._taken.how))
        keys["random_state_same"] = same_state(replay.state, state, self._torch)
        agreed = self._look("compiled", self._own, compiled)
        for remedy in self._remedies:
            self._try_remedy(remedy, drawn)
        if agreed or self._remedies:
            return keys
        how, own = self._taken.how, self._own
        if replay.draws:
            self._torch._dynamo.reset()
            if self._try("fallback_random", own, how, fallback_random=True):
                return keys
        drawn = {"fallback_random": True} if replay.draws else {}
        self.failing = (own, None, how, drawn) if self._names else None
        patch = {"fallback_random": True, "emulate_precision_casts": True}
        below = RUNGS[: RUNGS.index(own)] if own in RUNGS else RUNGS[:-1]
        right = None
        for rung in (*below, own):  # stages of the compiler up to the user's own backend
            kept = (name for name in how if rung == own or name in ("fullgraph", "dynamic"))
            self._torch._dynamo.reset()
            given = {name: how[name] for name in kept} | {"backend": rung}
            if self._try("ladder", rung, given, **patch) is False:
                self.failing = rung, right, given, patch
                break
            right = rung
        return keys

    def bisect(self, until: float, folder: Path) -> None:
        """Follow what is wrong to its operator: an ``output_fault`` event."""
        from .bisection import Bisection, Case

        if self.failing is None:
            return
        rung, right, how, patch = self.failing
        names, replay = self._names, self._replay
        kept = {name: how[name] for name in ("fullgraph", "dynamic") if name in how}
        region = self._taken.region_id

        def run(
            backend: Any, given: Mapping[str, Any], watch: Any = None, watch_gradients: Any = None
        ) -> Outputs:
            if backend is None:
                return replay.run(watch=watch, watch_gradients=watch_gradients)
            self._torch._dynamo.reset()
            with self._torch._inductor.config.patch(compile_threads=1, **given):
                compile_fn, how = self._torch.compile, {**kept, "backend": backend}
                return replay.run(
                    lambda call: compile_fn(call, **how), watch_gradients=watch_gradients
                )

        def wrong(found: Outputs) -> bool:
            return any(not self._row(name, found)["same"] for name in names)

        case = Case(rung, right, how, patch, run, wrong, until, folder, f"{region}", replay.draws)
        began = time.monotonic()
        found = Bisection(self._torch, self._frames, case).carry_out()
        replay.put_back()
        named = getattr(rung, "__name__", str(rung))
        keys = {"region_id": region, "backend": named, "seconds": time.monotonic() - began}
        self._recorder.write("output_fault", **keys, **vars(found))

    def _sizes(self) -> tuple[float, float]:
        """Root mean squares below which outputs, and gradients, count as no larger."""
        sizes: tuple[list[float], list[float]] = [self._replay.scale], [0.0]
        for name, value in self._eager.items():
            if isinstance(value, self._torch.Tensor):
                sizes[name.startswith(GRADIENT)].append(rms_of(value))
        outputs, gradients = (_LEAST_SHARE * max(found) for found in sizes)
        return min(1.0, outputs), gradients

    def _nudge(self) -> None:
        """How far eager's results move where all that it computes with moves by a rounding."""
        self._nudged = True
        for seed in range(_NUDGES):
            try:
                found = self._in_time(lambda seed=seed: self._replay.run(nudge=seed))  # type: ignore[misc]
            except Exception:  # noqa: BLE001 - the user's code, with other inputs
                return
            for name, eager in self._eager.items():
                row = agreement(self._torch, eager, found.get(name, _ABSENT), None)
                self._spread[name] = max(self._spread.get(name, 0.0), row.get("rms_diff") or 0.0)
                flips = row.get("differing") or 0
                self._flips[name] = max(self._flips.get(name, 0), flips)

    def _reference(self) -> str | None:
        """Run in float64; why there is no such reference, or None."""
        try:
            self._exact = self._in_time(lambda: exact_of(self._torch, self._replay, self._eager))
        except Exception as error:  # noqa: BLE001 - not every operator knows float64
            return reason_of(error)
        return None

    def _try(self, run: str, backend: Any, how: Mapping[str, Any], **patch: bool) -> bool | None:
        """None where it could not be run: a row has the reason."""
        try:
            return self._look(run, backend, self._in_time(lambda: self._compiled(how, **patch)))
        except Exception as error:  # noqa: BLE001 - compiling for a trial may fail
            self._write(run, backend, {"output": None, "same": None, "why": reason_of(error)})
            return None

    def _try_remedy(self, remedy: Trial, drawn: Mapping[str, bool]) -> None:
        """What a remedy that was tried gives; it is compiled again, for the copies."""
        how, self._trial, remedy.checked = self._taken.how, remedy.name, True
        usual = self._eager
        if drawn:
            self._torch._dynamo.reset()
        try:
            config = self._torch._inductor.config
            with remedy.switched(), config.patch(compile_threads=1, **drawn):
                found = self._in_time(
                    lambda: self._replay.run(lambda call: remedy.compiled(call, how))
                )
            if remedy.remedy.lowers_precision:  # what is left to agree with is eager in that one
                with remedy.switched():
                    self._eager = self._in_time(lambda: self._replay.run(remedy.within))
            if remedy.remedy.without_gradients:
                gradients = {n: v for n, v in self._eager.items() if n.startswith(GRADIENT)}
                found = {**gradients, **found}  # that there are none is meant
            self._look("trial", self._own, found)
        except Exception as error:  # noqa: BLE001 - the remedy's own
            self._write("trial", self._own, {"output": None, "same": None, "why": reason_of(error)})
        finally:
            self._eager = usual

    def _compiled(self, how: Mapping[str, Any], **patch: Any) -> Outputs:
        # The workers that compile next to the script have ended by now.
        with self._torch._inductor.config.patch(compile_threads=1, **patch):
            return self._replay.run(lambda call: self._torch.compile(call, **how))

    def _in_time(self, act: Callable[[], Outputs]) -> Outputs:
        if time.monotonic() > self._until:
            raise NotCompared(f"the time limit of {COMPARING_S:.0f} s was reached")
        return act()

    def _look(self, run: str, backend: Any, outputs: Outputs) -> bool:
        """Write one row an output; whether all of them are within the tolerance."""
        names = list(dict.fromkeys((*self._eager, *outputs)))
        rows = {name: self._row(name, outputs) for name in names}
        other_numbers = self._replay.draws and run == "compiled"
        judged = run != "eager_again" and not self._nudged and not other_numbers
        if judged and not all(row["same"] for row in rows.values()):
            self._nudge()
            rows = {name: self._row(name, outputs) for name in names}
        for name, row in rows.items():
            if run == "eager_again":
                self._spread[name] = row.get("rms_diff") or 0.0
            self._write(run, backend, {"output": name, **row})
        if run != "eager_again":
            wavering = (name for name, row in self._again.items() if not row["same"])
            wrong = {name for name, row in rows.items() if row["same"] is False}
            self._names = frozenset(wrong.difference(wavering))
        else:
            self._again = rows
        return all(row["same"] for row in rows.values())

    def _row(self, name: str, outputs: Outputs) -> dict[str, Any]:
        before = self._replay.before  # what a run leaves as it was is no output of it
        eager, other = ({**before, **found}.get(name, _ABSENT) for found in (self._eager, outputs))
        if eager is _ABSENT or other is _ABSENT:
            if name.startswith(LAYOUT):  # the output itself is there on one side only
                return {"same": True, "why": None}
            where = "this run" if eager is _ABSENT else "eager"
            return {"same": False, "why": f"only in {where}"}
        row = agreement(
            self._torch,
            eager,
            other,
            self._exact.get(name),
            self._spread.get(name, 0.0),
            least=self._least[name.startswith(GRADIENT)],
            flips=None if self._remedies else self._flips.get(name, 0),
        )
        whole = not row["same"] and not row["why"] and row.get("scale") is None
        if whole and self._sorted.tied(name, eager, other, tolerance_of):
            return {**row, "same": True, "why": _TIES}
        return row

    def _write(self, run: str, backend: Any, row: dict[str, Any]) -> None:
        named = backend if backend is None else getattr(backend, "__name__", str(backend))
        key = {"region_id": self._taken.region_id, "run": run, "backend": named}
        if self._trial is not None:
            key["trial"] = self._trial
        row = {**row, "what": kind_of(row["output"])}
        self._recorder.write("output_check", **key, **row)


def kind_of(name: str | None) -> str | None:
    """What a result is; a tensor that a function finds outside counts as a parameter."""
    kinds = {GRADIENT: "gradient", LAYOUT: "layout", "output": "output"}
    kinds |= {"argument ": "input", "buffer ": "buffer", "": "parameter"}
    return next((kinds[begin] for begin in kinds if name.startswith(begin)), None) if name else None


def reason_of(error: BaseException) -> str:
    """What is written where something could not be run."""
    text = str(error) if isinstance(error, NotCompared) else f"{type(error).__name__}: {error}"
    return text[:1000]


# -- how far apart two outputs are -----------------------------------------------------------------


def exact_of(torch: Any, replay: Replay, eager: Outputs) -> Outputs:
    """What a call gives in float64. Raises `NotCompared` where it then draws other numbers."""
    exact: Outputs = replay.run(double=True)
    for name, one in eager.items() if replay.draws else ():
        found = agreement(torch, one, one, exact.get(name))
        if (found.get("eager_rmse") or 0.0) > _OTHER_NUMBERS * (found.get("scale") or 0.0):
            raise NotCompared("in float64 it draws different random numbers")
    return exact


def agreement(
    torch: Any,
    eager: Any,
    other: Any,
    exact: Any,
    spread: float = 0.0,
    *,
    least: float | None = None,
    flips: int | None = None,
) -> dict[str, Any]:
    """Keys of the ``output_check`` event for one output; ``exact`` None: there is no reference.

    ``spread`` is how far eager is from itself (RMS), where it is not reproducible, or by a rounding
    of its inputs; ``flips``: elements of a whole-number output that differ then, None where a small
    part of them may. Tolerances are of the values' root mean square, of ``least`` where that is
    smaller; of 1 where it is None.
    """
    if isinstance(eager, float) and isinstance(other, float):  # ``loss.item()``, from float32
        a, b = (torch.tensor(each, dtype=torch.float64) for each in (eager, other))
        return _floating(torch, a, b, None, spread, least, TOLERANCE)
    if not isinstance(eager, torch.Tensor) or not isinstance(other, torch.Tensor):
        same = bool(type(eager) is type(other) and (eager == other or eager != eager))
        return {"same": same, "why": None if same else _unlike(eager, other, torch)}
    found = {"shape": list(other.shape), "dtype": _dtype(other), "elements": other.numel()}
    if eager.shape != other.shape or eager.dtype != other.dtype or eager.device != other.device:
        return {**found, "same": False, "why": _unlike(eager, other, torch)}
    if not isinstance(exact, torch.Tensor) or exact.shape != eager.shape:
        exact = None
    with torch.no_grad():
        if eager.is_floating_point() or eager.is_complex():
            tolerance = tolerance_of(eager)
            return {**found, **_floating(torch, eager, other, exact, spread, least, tolerance)}
        # whole numbers and truth values: how many elements differ
        differ = int((eager != other).sum())
        allowed = max(1, int(_WHOLE_SHARE * eager.numel())) if eager.numel() else 0
        if flips is not None:
            allowed = 3 * flips
        if exact is not None:
            allowed += 3 * int((eager != exact.to(eager.dtype)).sum())
        return {**found, "differing": differ, "same": differ <= allowed, "why": None}


def tolerance_of(tensor: Any) -> float:
    """torch's own, by precision."""
    return TOLERANCES.get(_dtype(tensor), TOLERANCE)


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _unlike(eager: Any, other: Any, torch: Any) -> str:
    if isinstance(eager, str) and isinstance(other, str):
        return f"{other}, in eager {eager}"[:300]

    def words(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{_dtype(value)}{list(value.shape)} on {value.device}"
        return f"{type(value).__name__} {value!r}"[:80]

    return f"{words(other)}, in eager {words(eager)}"


def _floating(
    torch: Any,
    eager: Any,
    other: Any,
    exact: Any,
    spread: float,
    least: float | None,
    tolerance: float,
) -> dict[str, Any]:
    dtype = _dtype(eager)
    a, b = _wide(torch, eager), _wide(torch, other)
    r = a if exact is None else _wide(torch, exact)
    finite = a.isfinite() & b.isfinite() & r.isfinite()
    odd = max(0, _odd(b, r) - _odd(a, r))  # compiled may be finite where eager overflows
    scale = _rms(r[finite])
    near = tolerance * (1.0 if least is None else min(1.0, scale))
    close = bool(torch.isclose(a, b, tolerance, near, equal_nan=True).all())
    a, b, r = a[finite], b[finite], r[finite]
    eager_rmse, rmse = _rms(a - r), _rms(b - r)
    times = 3.0 if dtype in _LOW or eager.numel() < _FEW else 2.0
    slack = tolerance * max(1.0 if least is None else least, scale)
    limit = times * eager_rmse + slack / 10 if exact is not None else _ALONE * slack
    limit += times * spread
    unit, other_unit = (each.flatten() / (_rms(each) or 1.0) for each in (a, b))
    norm = math.sqrt(float((unit * unit).sum()) * float((other_unit * other_unit).sum()))
    cosine = float((unit * other_unit).sum()) / norm if norm else None
    return {
        "max_abs_diff": float((a - b).abs().max()) if a.numel() else 0.0,
        "rms_diff": _rms(a - b),
        "scale": scale,
        "rmse": None if exact is None else rmse,
        "eager_rmse": None if exact is None else eager_rmse,
        "cosine": None if cosine is None else min(1.0, max(-1.0, cosine)),
        "differing": odd,
        "limit": limit,
        "same": close or (not odd and rmse <= limit),
        "why": None,
    }


def _wide(torch: Any, tensor: Any) -> Any:
    dense = tensor.detach()
    if dense.layout != torch.strided:
        dense = dense.to_dense()
    real = torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense
    return real.to(torch.float64)


def _odd(values: Any, reference: Any) -> int:
    """Elements that are NaN or infinite on one side only, or not the same of these."""
    alike = (values == reference) | (values.isnan() & reference.isnan())
    return int((~(values.isfinite() & reference.isfinite()) & ~alike).sum())


def _rms(values: Any) -> float:
    """Root mean square, 0 of nothing; scaled, so that squares don't overflow."""
    largest = float(values.abs().max()) if values.numel() else 0.0
    return largest * math.sqrt(float((values / largest).square().mean())) if largest else 0.0
