"""Changes of what compiled code calls or runs in: operators, transforms, contexts, switches."""

from __future__ import annotations

import ast

from traceview.derive.syntax import covers
from traceview.trials.source import STEP, Changes, Function, Source, called, dotted, loaded, stored

#: Variables with which torch looks for errors.
_CHECKS = ("CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCHINDUCTOR_NAN_ASSERTS")
#: Transforms of a function into another one, and one that is applied at once.
_TRANSFORMS = frozenset(["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "vmap"])
_APPLIED = "jvp"
_CLOCKS = frozenset(["monotonic", "perf_counter", "perf_counter_ns", "process_time", "time"])


def without_variable(source: Source, line: int) -> Changes:
    """``os.environ["CUDA_LAUNCH_BLOCKING"] = "1"`` goes: torch looks for no errors."""
    for node in source.all(ast.Assign):
        target = node.targets[0]
        if (
            node.lineno == line
            and isinstance(target, ast.Subscript)
            and dotted(target.value) == "os.environ"
            and getattr(target.slice, "value", "") in _CHECKS
        ):
            alone = len(getattr(source.parents[node], "body", [])) > 1 and source.alone([node])
            yield [(*source.lines([node]), "") if alone else (*source.span(node), "pass")]


def applied_transform(source: Source, _line: int) -> Changes:
    """``jvp(compiled, …)`` and ``grad(compiled)(…)`` → a compiled function that does it.

    Inside of a transform of torch.func nothing is compiled.
    """
    for call in source.all(ast.Call):
        kind, first = _transform(source, call), dotted(call.args[0]) if call.args else ""
        how = source.compiled_with(first) if kind and first else None
        if how is None or not source.imports("torch"):
            continue
        whole, above = call, source.parents[call]
        while kind != _APPLIED and isinstance(above, ast.Call) and whole in above.args[:1]:
            if _transform(source, above) in ("", _APPLIED):
                break
            whole, above = above, source.parents[above]
        name, text = f"_compiled_{kind}", source.of(whole)
        made, there = f"{text}(*given, **named)", name
        if kind == _APPLIED:
            rest: list[ast.expr | ast.keyword] = [*whole.args[1:], *whole.keywords]
            made = f"{source.of(whole.func)}({first}, *given, **named)"
            there = f"{name}({', '.join(source.of(each) for each in rest)})"
        elif not (isinstance(above, ast.Call) and above.func is whole):
            continue
        owner = source.owner(whole)
        own: set[str] = set()  # names of the function around it, which no other one can read
        if owner is not None:
            own = stored(ast.walk(owner)) | set(source.parameters(owner) or loaded([whole]))
        if own.isdisjoint(loaded([ast.parse(made)])) and name not in loaded(source.nodes):
            at = source.top(whole)
            mark = f"@torch.compile({how})" if how else "@torch.compile"
            head = f"{mark}\ndef {name}(*given, **named):\n{STEP}return {made}\n\n\n"
            yield [(at, at, head), (*source.span(whole), there)]


def _transform(source: Source, call: ast.Call) -> str:
    """The transform of torch.func that it calls; empty for another call."""
    owner, _, name = called(call).rpartition(".")
    known = owner in ("torch.func", "functorch") or (owner, name) == ("torch", "vmap")
    if not owner:
        known = any(
            node.module in ("torch.func", "functorch") and alias.name == name and not alias.asname
            for node in source.tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        )
    return name if known and (name in _TRANSFORMS or name == _APPLIED) else ""


def traced_operator(source: Source, line: int) -> Changes:
    """A custom operator that is made of torch's operators is a plain function, and is traced.

    Not one that has a gradient, or kernels, of its own: they may compute something else.
    """
    names = {called(node) for node in source.all(ast.Call) if node.lineno == line}
    for function in source.all(Function):
        marks = [d for d in function.decorator_list if called(d) == "torch.library.custom_op"]
        here = function.name in names or covers(function, line)
        here = here or any(covers(each, line) for each in marks)
        if not here or len(marks) != 1 or len(function.decorator_list) != 1:
            continue
        mark = marks[0]
        known = {each.arg: each.value for each in getattr(mark, "keywords", ())}
        mutated = known.pop("mutates_args", None)
        pure = isinstance(mutated, ast.Tuple | ast.List) and not mutated.elts and not known
        fakes = [
            each
            for each in source.all(Function)
            if [called(d) for d in each.decorator_list] == [f"{function.name}.register_fake"]
        ]
        others: list[ast.expr] = [
            node
            for node in source.all(ast.Attribute)
            if dotted(node.value) in (function.name, "torch.ops")
        ]
        own_name = [source.of(each) for each in getattr(mark, "args", ())]
        others += [each for each in source.all(ast.Constant) if source.of(each) in own_name]
        own = stored(ast.walk(function)) | set(source.parameters(function) or ())
        inside = (node for each in function.body for node in ast.walk(each))
        owners = {called(n).partition(".")[0] for n in inside if isinstance(n, ast.Call)}
        torchs = owners <= {"", "torch", "F", "math", *own}
        if pure and torchs and len(others) == 1 + len(fakes):
            yield [(*source.lines([mark]), ""), *((*source.lines([f]), "") for f in fakes)]


def untimed(source: Source, line: int) -> Changes:
    """A context manager that only reads a clock does nothing in compiled code."""
    with_line = [
        called(item.context_expr)
        for node in source.all(ast.With)
        if covers(node, line)
        for item in node.items
    ]
    for function in source.all(Function):
        marks = [called(each).rpartition(".")[2] for each in function.decorator_list]
        here = function.name in with_line or covers(function, line)
        nodes = list(ast.walk(function))
        calls = [called(n) for n in nodes if isinstance(n, ast.Call) and n not in (
            *function.decorator_list,)]  # fmt: skip
        yields = [each for each in nodes if isinstance(each, ast.Yield)]
        clocks = [name for name in calls if name.removeprefix("time.") in _CLOCKS]
        rest = {name.rpartition(".")[2] for name in calls if name not in clocks}
        if not here or marks != ["contextmanager"] or not source.imports("torch"):
            continue
        if len(yields) != 1 or yields[0].value is not None or not clocks:
            continue
        if rest <= {"append", "get", "setdefault"} and not any(
            isinstance(each, ast.With | ast.Raise | ast.ExceptHandler | ast.Global)
            for each in nodes
        ):
            first = function.body[ast.get_docstring(function) is not None]
            at, pad = source.lines([first])[0], source.indent(first)
            text = f"{pad}if torch.compiler.is_compiling():\n{pad}{STEP}yield\n{pad}{STEP}return\n"
            yield [(at, at, text)]
