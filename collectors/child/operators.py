"""What operators do while they run: seen one after the other, below autograd."""

from __future__ import annotations

import difflib
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .frames import Frames, outward
from .pieces import TORCHS, operator_function, operator_name
from .replay import rms_of
from .samples import flattened, sampled
from .taken import cloned

#: (operator, mutates, alias or fake, words): what an operator does and does not declare.
Undeclared = tuple[str, str, str]
_TOLERANCE = 1e-3
_COLLECTIVES = ("c10d", "_c10d_functional", "c10d_functional", "_dtensor")  # results come later
_STACK_LINE = re.compile(r'File "([^"]+)", line (\d+)')


class Watch:
    """Each operator that runs while this is entered, and what it gave, goes to ``_saw``."""

    def __init__(self) -> None:
        from torch.utils._python_dispatch import TorchDispatchMode

        about, saw = self._about, self._saw

        class Mode(TorchDispatchMode):  # type: ignore[misc]
            supports_higher_order_operators = True

            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                if not hasattr(func, "_schema"):  # it calls functions, as flex_attention does
                    return func(*args, **(kwargs or {}))
                about(func, args, kwargs or {})
                result = func(*args, **(kwargs or {}))
                saw(func, args, kwargs or {}, result)
                return result

        self._mode = Mode()

    def _about(self, func: Any, args: Any, kwargs: Mapping[str, Any], /) -> None:
        """The operator is about to run."""

    def _saw(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, /) -> None:
        raise NotImplementedError

    def keep(self, found: Mapping[str, Any]) -> None:
        """The call has given these outputs."""

    def __enter__(self) -> Watch:
        self._mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._mode.__exit__(*error)


class Sorted(Watch):
    """Watches operators that give indices of values: ``values`` has, of each output that is one
    of these indices, what they are indices into, and the dimension (None: of all of it).
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._seen: list[tuple[Any, Any, int | None]] = []
        self.values: dict[str, tuple[Any, int | None]] = {}
        super().__init__()

    def _saw(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, /) -> None:
        name = str(func).split(".")[1]
        if name in _SORTING:
            schema = [argument.name for argument in func._schema.arguments]
            given = {**dict(zip(schema, args, strict=False)), **kwargs}
            default = None if name in ("argmax", "argmin") else -1
            indices = result[1] if isinstance(result, (tuple, list)) else result
            if isinstance(indices, self._torch.Tensor) and not indices.is_floating_point():
                self._seen.append((indices, args[0], given.get("dim", default)))

    def keep(self, found: Mapping[str, Any]) -> None:
        """Which outputs are such indices."""
        for name, value in found.items():
            for indices, of, dim in self._seen if isinstance(value, self._torch.Tensor) else ():
                same = indices.data_ptr() == value.data_ptr() and indices.numel() == value.numel()
                if same and value.numel():
                    self.values[name] = (of.detach(), dim)
        self._seen.clear()

    def tied(self, name: str, eager: Any, other: Any, tolerance: Callable[[Any], float]) -> bool:
        """Whether the values at these indices are equal, but for roundings."""
        of, dim = self.values.get(name, (None, None))
        if of is None or of.dtype is self._torch.bool:
            return False
        if dim is None or of.dim() == 0:
            of, dim, eager, other = of.flatten(), 0, eager.flatten(), other.flatten()
        elif eager.dim() < of.dim():
            eager, other = eager.unsqueeze(dim), other.unsqueeze(dim)
        if int(other.min()) < 0 or int(other.max()) >= of.shape[dim]:
            return False
        a, b = (self._torch.gather(of, dim, each.long()).double() for each in (eager, other))
        limit = tolerance(of)
        return bool(self._torch.isclose(a, b, limit, limit * rms_of(of), equal_nan=True).all())


_SORTING = (
    "argmax", "argmin", "argsort", "kthvalue", "max", "median", "min", "mode", "sort", "topk",
)  # fmt: skip


class Rounded(Watch):
    """Moves each floating-point result up or down by a rounding, where its operator rounds.

    ``low``: something was computed in low precision; ``sorts``: operators chose among values, and
    which of equal ones they took is nothing that a rounding shows.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._generators: dict[Any, Any] = {}
        self.low = self.sorts = False
        super().__init__()

    def _saw(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, /) -> None:
        from torch.utils._pytree import tree_leaves

        torch, name = self._torch, f"{func}..".split(".")[1]
        leaves = tree_leaves(result)
        floats = [each for each in leaves if is_float(each, torch)]
        self.sorts |= name in _SORTING and len(floats) < len(leaves)
        returns = getattr(getattr(func, "_schema", None), "returns", ())
        view = any(each.alias_info and not each.alias_info.is_write for each in returns)
        given = tree_leaves((args, kwargs))
        exact = view or name in _EXACT or not any(is_float(each, torch) for each in given)
        for each in floats:
            eps = torch.finfo(each.dtype).eps
            if each.dtype is torch.float32 and self._in_tf32(name, each):
                eps = _TF32
            self.low |= eps > _LOW_EPS
            if "empty" in name:
                each.fill_(_UNSET)
            elif not exact and each.numel():
                self._nudge(torch.view_as_real(each) if each.is_complex() else each, eps)

    def _nudge(self, tensor: Any, eps: float) -> None:
        torch, device = self._torch, tensor.device
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(0)
        with torch.no_grad():
            wide = tensor.double() if tensor.element_size() == 8 else tensor.float()
            given = {"generator": self._generators[device], "device": device, "dtype": wide.dtype}
            part = torch.rand(tensor.shape, **given).mul_(2).sub_(1)
            step = eps if eps > _LOW_EPS else 4 * eps
            tensor.copy_(part.mul_(step).add_(1).mul_(wide))

    def _in_tf32(self, name: str, tensor: Any) -> bool:
        if "convolution" in name:
            return bool(tensor.is_cuda)  # cuDNN's default
        return name in _PRODUCTS and self._torch.get_float32_matmul_precision() != "highest"


class Own(Watch):
    """Operators that are not torch's, by name, with what the user made each from (or None)."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.functions: dict[str, Any] = {}
        super().__init__()

    def _saw(self, func: Any, *_: Any) -> None:
        name = operator_name(func, self._torch)
        if getattr(func, "namespace", TORCHS[0]) not in TORCHS:
            self.functions.setdefault(name, operator_function(self._torch, name))


_UNSET = 3.0  # whatever a result takes from memory that is not filled yet is another value
_TF32 = 2.0**-10
_LOW_EPS = 1e-6
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "linear")
#: Operators that give some of the values that they are given, or whole numbers.
_EXACT = frozenset((
    "abs", "amax", "amin", "cat", "ceil", "clamp", "clone", "constant_pad_nd", "copy_", "embedding",
    "fill_", "flip", "floor", "gather", "index", "index_put_", "index_select", "masked_fill", "max",
    "maximum", "min", "minimum", "neg", "relu", "repeat", "roll", "round", "scatter", "sign",
    "sort", "stack", "topk", "tril", "triu", "trunc", "where", "zero_",
))  # fmt: skip


def is_float(value: Any, torch: Any) -> bool:
    """Whether it is a dense tensor of real or complex numbers, and no subclass."""
    plain = type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided
    return bool(plain and (value.is_floating_point() or value.is_complex()))


# -- what an operator does and does not declare ----------------------------------------------------


def undeclared(torch: Any, call: Callable[..., Any], given: Sequence[Any]) -> list[Undeclared]:
    """Of operators that are not torch's own, in a call with these inputs."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map_only

    found: list[Undeclared] = []
    tensor = torch.Tensor

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if func.namespace in TORCHS:
                return func(*args, **kwargs)
            name = operator_name(func, torch)
            before = tree_map_only(tensor, lambda t: t.detach().clone(), (args, kwargs))
            fake: Any = None
            with suppress(Exception):
                mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
                faked, named = tree_map_only(tensor, mode.from_tensor, (args, kwargs))
                with mode:
                    fake = func(*faked, **named)
            result = func(*args, **kwargs)
            known = func._schema.arguments
            pairs = [(known[n].name, args[n], before[0][n]) for n in range(len(args))]
            pairs += [(key, value, before[1][key]) for key, value in kwargs.items()]
            mutable = {each.name for each in known if each.alias_info is not None}
            outputs = [each for each in tree_leaves(result) if isinstance(each, tensor)]
            for argument, now, then in pairs:
                if argument in mutable or not isinstance(now, tensor):
                    continue
                if not torch.equal(torch.nan_to_num(now), torch.nan_to_num(then)):
                    text = f"it writes into its argument {argument} and doesn't declare that"
                    found.append((name, "mutates", text))
                storage = now.untyped_storage().data_ptr()
                if any(each.untyped_storage().data_ptr() == storage for each in outputs):
                    text = f"its result shares memory with its argument {argument}"
                    found.append((name, "alias", text))
            said = [each for each in tree_leaves(fake) if isinstance(each, tensor)]
            for real, expected in zip(outputs, said, strict=False):
                for what in ("shape", "dtype", "stride()"):
                    a, b = (_looked(each, what) for each in (real, expected))
                    if a != b:
                        words = what.removesuffix("()")
                        found.append(
                            (name, "fake", f"its fake gives {words} {b}, the operator {a}")
                        )
                        break
            return result

    with suppress(Exception), torch.no_grad(), Watch():
        call(*cloned(given, torch))
    return found


def _looked(tensor: Any, what: str) -> Any:
    if what == "stride()":
        pairs = zip(tensor.shape, tensor.stride(), strict=True)
        return tuple(step for size, step in pairs if size > 1)
    found = getattr(tensor, what)
    return tuple(found) if what == "shape" else str(found).removeprefix("torch.")


# -- one run against another -----------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """One operator that ran: its name, its results in short, and the line that it is from."""

    name: str
    key: tuple[Any, ...]
    sizes: tuple[float, ...]
    file: str | None
    line: int | None
    backward: bool


class Listed(Watch):
    """Lists the operators that run while this is entered: ``ran``. The line is the user's."""

    def __init__(self, torch: Any, frames: Frames, ran: list[Ran], *, backward: bool) -> None:
        self._torch, self._frames, self._ran, self._backward = torch, frames, ran, backward
        super().__init__()

    def _saw(self, func: Any, _args: Any, _kwargs: Mapping[str, Any], result: Any, /) -> None:
        name = operator_name(func, self._torch)
        if name not in _NOTHING:
            torch = self._torch
            tensors = result if isinstance(result, (list, tuple)) else (result,)
            tensors = [each for each in tensors if isinstance(each, torch.Tensor)]
            key = tuple((tuple(each.shape), str(each.dtype)) for each in tensors)
            plain = [e.double() for e in tensors if not e.is_complex() and not e.is_sparse]
            wide = [torch.nan_to_num(each.detach()) for each in plain if each.numel()]
            pairs = ((each.sum(), each.square().mean().sqrt()) for each in wide)
            sizes = tuple(float(figure) for pair in pairs for figure in pair)
            if "empty" in name:  # what lies in memory by chance
                sizes = ()
            place = line_of(self._frames)
            self._ran.append(Ran(name, (name, *key), sizes, *place, self._backward))


#: What runs on one side or the other and computes nothing.
_NOTHING = ("aten.detach", "aten.alias", "aten.lift_fresh", "aten.view_as")


def line_of(frames: Frames) -> tuple[str | None, int | None]:
    """The line that an operator which runs now is from: of the graph's node, or of the stack."""
    for frame in outward(sys._getframe(1)):
        node = frame.f_locals.get("n") if frame.f_code.co_name == "run_node" else None
        if node is not None:
            return users_line(node.meta.get("stack_trace"), frames) or (None, None)
        if frames.is_user(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
    return None, None


def users_line(stack: str | None, frames: Frames) -> tuple[str, int] | None:
    """The innermost line of the user's in the text of a stack."""
    places = _STACK_LINE.findall(stack or "")
    return next(((f, int(n)) for f, n in reversed(places) if frames.is_user(f)), None)


def first_unlike(eager: Sequence[Ran], other: Sequence[Ran]) -> Ran | None:
    """The first operator of ``other`` that eager hasn't got, or that gives something else there.

    Else the first of eager's that is missing: those between graphs are not seen.
    """
    ours, theirs = [each.key for each in eager], [each.key for each in other]
    missing: Ran | None = None
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            for one, two in zip(eager[i:i_end], other[j:j_end], strict=True):
                most = _TOLERANCE * max(map(abs, one.sizes), default=0.0)
                pairs = zip(one.sizes, two.sizes, strict=False)
                if not all(abs(a - b) <= most for a, b in pairs):
                    return two
        elif tag != "delete":
            return other[j]
        else:
            missing = missing or eager[i]
    return missing


# -- what every operator of a call read and gave ---------------------------------------------------


class _Computing(Watch):
    """Operators that compute something: no views, nothing that lies in memory by chance."""

    def __init__(self, torch: Any) -> None:
        from torch.utils._pytree import tree_leaves

        self._torch = torch
        self._leaves = tree_leaves
        self._counts: Counter[str] = Counter()
        super().__init__()

    def _name(self, func: Any) -> str | None:
        """Its name; None of one that is passed over."""
        if not hasattr(func, "_schema"):
            return None
        name = operator_name(func, self._torch)
        returns = [each.alias_info for each in func._schema.returns]
        is_view = any(each is not None and not each.is_write for each in returns)
        waits = func.namespace in _COLLECTIVES and "wait_tensor" not in name
        return None if is_view or waits or name in _NOTHING or "empty" in name else name

    def _given(
        self, func: Any, args: Any, kwargs: Mapping[str, Any], *, written: bool
    ) -> list[Any]:
        """The tensors among its arguments, or those of them that it writes into."""
        known = func._schema.arguments
        given = [*zip(known, args, strict=False)]
        given += [(each, kwargs[each.name]) for each in known if each.name in kwargs]
        values = [
            v for each, v in given if not written or (each.alias_info and each.alias_info.is_write)
        ]
        return self._tensors(values)

    def _gave(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any) -> list[Any]:
        """The tensors that it returns, or writes into."""
        found = {id(each): each for each in self._tensors(result)}
        found |= {id(each): each for each in self._given(func, args, kwargs, written=True)}
        return list(found.values())

    def _tensors(self, values: Any) -> list[Any]:
        return [each for each in self._leaves(values) if isinstance(each, self._torch.Tensor)]

    def _next(self, name: str) -> tuple[str, int]:
        self._counts[name] += 1
        return name, self._counts[name]


class Doubled(_Computing):
    """In a run in float64: ``values`` by operator, by the how many-th of its name."""

    def __init__(self, torch: Any) -> None:
        self.values: dict[tuple[str, int], list[list[float | None]]] = {}
        super().__init__(torch)

    def _saw(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, /) -> None:
        name = self._name(func)
        if name is not None:
            gave = self._gave(func, args, kwargs, result)
            key = self._next(name) if gave else (name, 0)
            with suppress(Exception):  # a tensor that has no values to look at
                flats = (flattened(self._torch, each) for each in gave)
                self.values[key] = [sampled(self._torch, flat) for flat in flats]


class Noted(_Computing):
    """A row of a ``Recording`` for each operator of an eager run, with the user's line."""

    def __init__(
        self, torch: Any, frames: Frames, recording: Any, call: int, doubled: Doubled
    ) -> None:
        self._frames, self._recording, self._call = frames, recording, call
        self._doubled, self._number = doubled, 0
        self._reads: list[int | None] = []
        self._lines: dict[int, tuple[str | None, int | None]] = {}
        super().__init__(torch)

    def _about(self, func: Any, args: Any, kwargs: Mapping[str, Any], /) -> None:
        if self._name(func) is not None:
            given = self._given(func, args, kwargs, written=False)
            self._reads = [self._recording.tensor(each) for each in given]

    def _saw(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, /) -> None:
        name = self._name(func)
        backward, (file, line) = self._place()
        gave = [] if name is None else self._gave(func, args, kwargs, result)
        if name is None or not gave:
            return
        exact = self._doubled.values.get(self._next(name), [])
        exact = exact if len(exact) == len(gave) else [None] * len(gave)  # type: ignore[list-item]
        seeded = getattr(self._torch.Tag, "nondeterministic_seeded", None)
        self._recording.write(
            "operator",
            call=self._call,
            operator=self._number,
            name=name,
            file=file,
            line=line,
            direction="backward" if backward else "forward",
            random=seeded in func.tags,
            inputs=self._reads,
            outputs=[self._recording.tensor(*each) for each in zip(gave, exact, strict=True)],
        )
        self._number += 1

    def _place(self) -> tuple[bool, tuple[str | None, int | None]]:
        """Whether it is in the backward, and the line: in the backward that of the forward's."""
        node = self._torch._C._current_autograd_node()
        if node is None:
            place = line_of(self._frames)
            self._lines.setdefault(self._torch.autograd._get_sequence_nr() - 1, place)
            return False, place
        for frame in outward(sys._getframe(1)):
            if frame.f_code.co_name == "_engine_run_backward":
                break
            if self._frames.is_user(frame.f_code.co_filename):
                return True, (frame.f_code.co_filename, frame.f_lineno)
        return True, self._lines.get(node._sequence_nr(), (None, None))
