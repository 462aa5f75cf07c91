"""From a callable that is wrong to its operator, and to what in the compiler does it.

Every try compiles the callable again and compares: some of its operators by the backend that is
wrong, the others in eager (`pieces`); then with some of the compiler's passes, decompositions or
lowerings left out, where torch's own bisector asks; then with settings. All in this process, as the
comparison itself, and in a time that is given.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .compiles import without_caches
from .frames import Frames
from .operators import Listed, Ran, first_unlike, undeclared, users_line
from .pieces import (
    DECOMPOSITIONS,
    LOWERINGS,
    PARTS,
    TORCHS,
    Backend,
    Piece,
    Pieces,
    Switches,
    backend_of,
    definition,
    kernel_of,
    module_name,
    operator_function,
    operator_name,
)
from .standalone import Standalone
from .taken import cloned

Outputs = Mapping[str, Any]
#: Runs the call with this backend (None: in eager), under this configuration of Inductor's.
Run = Callable[..., Outputs]

_CUSTOM_PASSES = (
    "pre_grad_custom_pass", "joint_custom_pre_pass", "joint_custom_post_pass",
    "post_grad_custom_pre_pass", "post_grad_custom_post_pass", "_pre_fusion_custom_pass",
    "_post_fusion_custom_pass", "custom_partitioner_fn",
)  # fmt: skip
#: Settings that leave out a part of code generation, the least costly first, and what that is.
_SETTINGS = (
    ("torch._inductor.config.emulate_precision_casts", True, "rounding"),
    ("torch._inductor.config.cpp.simdlen", 1, "vectorized code"),
    ("torch._inductor.config.max_fusion_size", 1, "fusion"),
    ("torch._inductor.config.inplace_buffers", False, "reuse of memory"),
    ("torch._inductor.config.allow_buffer_reuse", False, "reuse of memory"),
    ("torch._inductor.config.layout_optimization", False, "memory layout"),
    ("torch._inductor.config.comprehensive_padding", False, "padding"),
    ("torch._inductor.config.split_reductions", False, "split reductions"),
    ("torch._inductor.config.triton.persistent_reductions", False, "persistent reductions"),
)
#: What a stage does, where nothing in it can be left out to make it right.
_STAGES = {
    "aot_eager": "AOTAutograd",
    "aot_eager_decomp_partition": "partition",
    "inductor": "code generation",
}


class OutOfTime(Exception):
    """The budget is used up."""


@dataclass
class Case:
    """What is wrong: with the backend ``rung`` of these arguments, and not with ``right``.

    ``wrong`` judges what ``run`` gives. ``until``: the end of the budget.
    """

    rung: Any
    right: str | None
    how: Mapping[str, Any]
    patch: Mapping[str, Any]
    run: Run
    wrong: Callable[[Outputs], bool]
    until: float
    folder: Path
    name: str
    draws: bool


@dataclass
class Found:
    """What is known so far: the keys of the ``output_fault`` event."""

    operator: str | None = None
    operators: list[str] = field(default_factory=list)
    file: str | None = None
    line: int | None = None
    module: str | None = None
    part: str | None = None
    part_name: str | None = None
    part_file: str | None = None
    part_line: int | None = None
    users: bool | None = None
    graph: str | None = None
    kernel: str | None = None
    remedies: list[str] = field(default_factory=list)
    result: str | None = None
    element: list[int] | None = None
    eager: float | None = None
    compiled: float | None = None
    exact: float | None = None
    script: str | None = None
    script_why: str | None = None
    reproduced: int | None = None
    why: str | None = None
    tries: int = 0


class Bisection:
    """One callable."""

    def __init__(self, torch: Any, frames: Frames, case: Case) -> None:
        self._torch, self._frames, self._case = torch, frames, case
        self._inner = backend_of(torch, case.rung, case.how)
        self._kept: tuple[Piece, list[Any]] | None = None
        self._grad = True
        self._doing = ""
        self._all: list[str] = []
        self.found = Found()

    def carry_out(self) -> Found:
        """As far as the budget goes."""
        found = self.found
        try:
            with without_caches(self._torch):
                self._carry_out()
        except OutOfTime:
            found.why = f"{self._doing}, the budget was used up"
        except Exception as error:  # noqa: BLE001 - the user's code, or the compiler
            found.why = f"{self._doing}: {type(error).__name__}: {error}"[:500]
        return found

    def _carry_out(self) -> None:
        self._doing = "it was not begun"
        self._check_time()
        if self._case.rung == "eager":
            self._doing = "what Dynamo captures was not compared to the end"
            self._captured()
            return
        self._doing = "the operator was not looked for to the end"
        first, last = self._operator()
        self._doing = "what the compiler does was not found"
        switches = Switches(self._torch)
        with switches.on():
            self._try(first, last, keep=self._keep)
        self._name_operator()
        if not self._declared():
            self._part(switches, first, last)
        found, case = self.found, self._case
        if found.part is None and isinstance(case.rung, str):
            found.part = _STAGES.get(case.rung)
        if not found.remedies and case.right is not None:
            found.remedies.append(f"backend={case.right}")
        self._kernel()
        self._doing = "no script was written"
        self._widen(first, last)
        self._hand_over()

    # -- the operator ------------------------------------------------------------------------------

    def _operator(self) -> tuple[int, int]:
        """The smallest range of operators that is wrong by itself."""
        whole = Pieces(self._torch, self._inner)
        if not self._is_wrong(whole):
            raise ValueError("a new compile of the whole graph is right")
        self._all = whole.operators
        first, last = 0, len(whole.operators)
        while last - first > 1:
            middle = (first + last) // 2
            if self._try(first, middle):
                last = middle
            elif self._try(middle, last):
                first = middle
            else:
                break
            self._near(first, last)
        if last - first > 1:  # several have to be compiled together
            last = least(first + 1, last, lambda end: self._try(first, end))
            first = last - least(1, last - first, lambda count: self._try(last - count, last))
        self._near(first, last)
        return first, last

    def _near(self, first: int, last: int) -> None:
        """What is known of the operator while the range is still large."""
        self.found.operators = self._all[first:last][:32]
        if last - first == 1:
            self.found.operator = self._all[first]

    def _name_operator(self) -> None:
        if self._kept is not None:
            node = self._kept[0].operators[-1]
            self.found.operator = operator_name(node.target, self._torch)
            self._place(node)

    def _place(self, node: Any) -> None:
        """The user's line of a node, if it is known, and the module."""
        place = users_line(node.meta.get("stack_trace"), self._frames)
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
        if stack:
            name, kind = list(stack.values())[-1][:2]
            kind = getattr(kind, "__name__", None) or str(kind).rpartition(".")[2]
            self.found.module = f"{module_name(name)} ({kind})"
        if place is not None:
            self.found.file, self.found.line = place

    def _captured(self) -> None:
        """What Dynamo captures is not what the code does: the first operator that is another."""
        found, torch, frames = self.found, self._torch, self._frames
        eager: list[Ran] = []
        other: list[Ran] = []

        def backend(module: Any, _inputs: Sequence[Any], **_options: Any) -> Callable[..., Any]:
            def run(*args: Any) -> Any:
                with Listed(torch, frames, other, backward=False):
                    interpreter = torch.fx.Interpreter(module)
                    return interpreter.run(*args, enable_io_processing=False)

            return run

        forward, backward = (Listed(torch, frames, eager, backward=each) for each in (False, True))
        self._case.run(None, {}, forward, backward)
        self._case.run(backend, {}, None, Listed(torch, frames, other, backward=True))
        found.tries += 1
        found.part = "capture"
        found.script_why = "it would need your own code, whose capture by Dynamo differs"
        first = first_unlike(eager, other)
        if first is None:
            found.why = "the same operators run with the same results in the graphs and in eager"
            return
        found.operator, found.operators = first.name, [first.name]
        found.file, found.line = first.file, first.line
        found.graph = "backward" if first.backward else "forward"

    # -- what does it ------------------------------------------------------------------------------

    def _declared(self) -> bool:
        """Whether an operator of the piece does what it does not declare."""
        if self._kept is None:
            return False
        for name, kind, text in undeclared(self._torch, self._kept[0].module, self._kept[1]):
            place = definition(operator_function(self._torch, name))
            self._set_part("custom operator", text, place)
            self.found.operator = name
            for node in self._kept[0].operators:
                if operator_name(node.target, self._torch) == name:
                    self._place(node)
            if kind == "mutates":
                self.found.remedies.append(f"name the argument in mutates_args of {name}")
            else:
                self.found.remedies.append(f"correct the {kind} of {name}")
            return True
        return False

    def _part(self, switches: Switches, first: int, last: int) -> None:
        found, torch = self.found, self._torch
        if not isinstance(self._case.rung, str):
            self._set_part("backend", None, definition(self._case.rung))
        for name in _CUSTOM_PASSES:
            own = getattr(torch._inductor.config, name, None)
            if own and self._try(first, last, **{name: None}) is False:
                self._set_part("pass", name, definition(own))
                self._remedy(f"torch._inductor.config.{name}=None", **{name: None})
                return
        lowerings = torch._inductor.lowering.lowerings
        for op in self._own_operators():
            own = lowerings.get(op)
            if own is None or not self._is_users(definition(own)):
                continue
            del lowerings[op]
            try:
                right = self._try(first, last) is False
            finally:
                lowerings[op] = own
            if right:
                found.operator = operator_name(op, torch)
                self._set_part("lowering", found.operator, definition(own))
                return
        for part in PARTS:
            if part == DECOMPOSITIONS and self._case.right == "aot_eager_decomp_partition":
                continue
            keys = [key for kind, key in switches.seen if kind == part]
            if not keys:
                continue
            with switches.on(off={(part, key) for key in keys}):
                if self._try(first, last) is not False:
                    continue

            # The first ``count`` stay: how many does it take to be wrong?
            def wrong(count: int, part: str = part, keys: list[str] = keys) -> bool:
                with switches.on(off={(part, key) for key in keys[count:]}):
                    return bool(self._try(first, last))

            key = keys[least(1, len(keys), wrong) - 1]
            self._blame(switches, part, key)
            if part == LOWERINGS and not found.users:
                self._settings(first, last)
            self._confirm(switches, part, key)
            return
        if self._case.rung == "inductor":
            self._settings(first, last)

    def _own_operators(self) -> list[Any]:
        """The piece's operators that are not torch's."""
        nodes = self._kept[0].nodes if self._kept is not None else ()
        targets = [node.target for node in nodes if hasattr(node.target, "_schema")]
        return [each for each in targets if each.namespace not in TORCHS]

    def _is_users(self, place: tuple[str, int] | None) -> bool:
        return place is not None and self._frames.is_user(place[0])

    def _blame(self, switches: Switches, part: str, key: str) -> None:
        """A pass, a decomposition or a lowering is what does it."""
        found, torch = self.found, self._torch
        node, op, graph = switches.seen[part, key]
        found.graph = graph
        name = operator_name(op, torch) if op is not None else key
        function: Any = None
        if part == DECOMPOSITIONS:
            function = torch._inductor.decomposition.decompositions.get(op)
        elif part == LOWERINGS:
            function = torch._inductor.lowering.lowerings.get(op)
        if op is not None:
            found.operator = name
        if node is not None:
            self._place(node)
        words = {DECOMPOSITIONS: "decomposition", LOWERINGS: "lowering"}
        self._set_part(words.get(part, "pass"), name, definition(function))

    def _confirm(self, switches: Switches, part: str, key: str) -> None:
        """Whether the whole is right without it: then that is a remedy."""
        _, op, _ = switches.seen[part, key]
        with switches.on(off={(part, key if op is None else op)}):
            right = self._try(0, None) is False
        if not right:
            return
        if part == DECOMPOSITIONS:
            text = f"torch._inductor.decomposition.decompositions.pop(torch.ops.{op})"
        elif part == LOWERINGS:
            text = f"torch._inductor.lowering.make_fallback(torch.ops.{op}, override_decomp=True)"
        elif hasattr(self._torch._inductor.config, "disabled_passes"):
            text = f"torch._inductor.config.disabled_passes={key}"
        else:
            return
        self.found.remedies.append(text)

    def _settings(self, first: int, last: int) -> None:
        """The first setting that makes it right, if all of them together do."""
        known = self._torch._inductor.config.get_config_copy()
        wanted = [
            (setting, name, value, part)
            for setting, value, part in _SETTINGS
            for name in [setting.removeprefix("torch._inductor.config.")]
            if known.get(name, value) != value and self._case.patch.get(name) != value
            if not name.startswith("triton") or self._torch.cuda.is_available()
        ]
        together = {name: value for _, name, value, _ in wanted}
        if self._try(first, last, None, **together) is not False:
            return
        for setting, name, value, part in wanted:
            if self._try(first, last, None, **{name: value}) is False:
                self._set_part(part, None, None)
                self._remedy(f"{setting}={value}", **{name: value})
                return

    def _remedy(self, text: str, **patch: Any) -> None:
        if self._try(0, None, **patch) is False:
            self.found.remedies.append(text)

    def _set_part(self, part: str, name: str | None, place: tuple[str, int] | None) -> None:
        found = self.found
        found.part, found.part_name = part, name
        found.part_file, found.part_line = place or (None, None)
        found.users = self._is_users(place)
        if not found.users:
            found.part_file = found.part_line = None

    def _kernel(self) -> None:
        found = self.found
        if self._case.rung == "inductor" and found.operator:
            found.kernel = kernel_of(found.operator, self._modules())

    def _modules(self) -> list[str]:
        """Text of the code that the last compile wrote."""
        modules = getattr(self._torch._inductor.codecache.PyCodeCache, "modules", [])
        texts = []
        for each in reversed(modules[-8:]):
            with suppress(OSError, TypeError):
                texts.append(Path(each.__file__).read_text(encoding="utf-8"))
        return texts

    # -- the script --------------------------------------------------------------------------------

    def _widen(self, first: int, last: int) -> None:
        """Let views that the piece reads be made in it: apart from their base they are none."""
        while first > 0 and self._kept is not None and shared(self._torch, self._kept[1]):
            usual, self._kept, first = self._kept, None, first - 1
            if not self._try(first, last, keep=self._keep):
                self._kept = usual
                return

    def _hand_over(self) -> None:
        """Values at the worst element, and a script that shows it."""
        found, case = self.found, self._case
        if self._kept is None:
            return
        piece, given = self._kept
        alone = Standalone(
            self._torch,
            piece.module,
            given,
            self._inner,
            case.rung,
            case.how,
            grad=self._grad,
            fallback_random=bool(case.patch.get("fallback_random")) and case.draws,
        )
        with self._torch._inductor.config.patch(compile_threads=1, **case.patch):
            worst = alone.worst()
        if worst is not None:
            found.result, found.element = worst.name, worst.element
            found.eager, found.compiled, found.exact = worst.eager, worst.compiled, worst.exact
        if found.users:
            where = f"{Path(found.part_file or '').name}:{found.part_line}"
            found.script_why = (
                f"the {found.part} is your own ({where}): a script with torch alone hasn't got it"
            )
            return
        if not isinstance(case.rung, str):
            found.script_why = "the backend is your own: a script with torch alone hasn't got it"
            return
        title = f"{found.operator} compiled with backend={case.rung!r} is wrong"

        def left() -> float:
            return case.until - time.monotonic()

        plain = re.sub(r"\W+", "_", (found.operator or "graph").partition(".")[2]).strip("_")
        written = alone.script(case.folder, f"{case.name}_{plain}", f"{title}.", left)
        name, found.reproduced, found.script_why = written
        found.script = name and f"{case.folder.name}/{name}"

    # -- tries -------------------------------------------------------------------------------------

    def _keep(self, piece: Piece, given: Sequence[Any]) -> None:
        if self._kept is None:
            self._kept = piece, list(cloned(given, self._torch))
            self._grad = self._torch.is_grad_enabled()

    def _try(
        self,
        first: int,
        last: int | None,
        keep: Callable[[Piece, Sequence[Any]], None] | None = None,
        **patch: Any,
    ) -> bool | None:
        """Whether it is wrong with these operators compiled; None where that can't be run."""
        try:
            return self._is_wrong(Pieces(self._torch, self._inner, first, last, keep), **patch)
        except OutOfTime:
            raise
        except Exception:  # noqa: BLE001 - a part of a graph may not compile by itself
            return None

    def _check_time(self) -> None:
        if time.monotonic() > self._case.until:
            raise OutOfTime

    def _is_wrong(self, backend: Backend, **patch: Any) -> bool:
        self._check_time()
        self.found.tries += 1
        return self._case.wrong(self._case.run(backend, {**self._case.patch, **patch}))


def shared(torch: Any, values: Sequence[Any]) -> bool:
    """Whether two of these tensors lie in the same memory."""
    tensors = [each for each in values if isinstance(each, torch.Tensor)]
    return len({each.untyped_storage().data_ptr() for each in tensors}) < len(tensors)


def least(low: int, high: int, wrong: Callable[[int], bool | None]) -> int:
    """The least number from ``low`` to ``high`` that is wrong, where ``high`` is, by halving."""
    while low < high:
        middle = (low + high) // 2
        if wrong(middle):
            high = middle
        else:
            low = middle + 1
    return high
