"""Changes around compiled code: what keeps it from being compiled, or leaves it waiting."""

from __future__ import annotations

import ast
from collections.abc import Collection

from traceview.derive.facts.slow_switches import NARROW_VECTORS
from traceview.derive.syntax import covers
from traceview.trials.source import (
    DRAWS,
    PURE,
    STEP,
    Changes,
    Function,
    Source,
    called,
    dotted,
    loaded,
    stored,
)

_RESETS = ("torch._dynamo.reset", "torch.compiler.reset")
_CACHES = ("lru_cache", "cache", "functools.lru_cache", "functools.cache")
_SCRIPTED = ("script", "trace", "freeze", "optimize_for_inference")
#: What a module has only as TorchScript.
_OF_SCRIPT = frozenset(["code", "graph", "inlined_graph", "save", "save_to_buffer"])
_COUNTED = ("range", "enumerate", "zip")
_COPIES = frozenset(["deepcopy", "pickle", "AveragedModel"])
#: Variables with which torch looks for errors.
_CHECKS = ("CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCHINDUCTOR_NAN_ASSERTS")
_SWITCHES = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")


# -- nothing is compiled, or again and again -------------------------------------------------------


def switched_on(source: Source, _line: int) -> Changes:
    """``os.environ["TORCH_COMPILE_DISABLE"] = …`` → ``"0"``."""
    for node, name in source.variables():
        if name in _SWITCHES:
            yield [(*source.span(node.value), '"0"')]


def without_variable(source: Source, line: int) -> Changes:
    """``os.environ["CUDA_LAUNCH_BLOCKING"] = "1"`` goes: torch looks for no errors."""
    yield from _without(source, line, _CHECKS)


def with_vectors(source: Source, line: int) -> Changes:
    """``os.environ["MKL_CBWR"] = "COMPATIBLE"`` goes: results may differ between CPUs."""
    yield from _without(source, line, NARROW_VECTORS)


def _without(source: Source, line: int, names: Collection[str]) -> Changes:
    for node, name in source.variables():
        if node.lineno == line and name in names:
            yield [source.removed(node)]


def stance_for_a_while(source: Source, _line: int) -> Changes:
    """``torch.compiler.set_stance("force_eager")`` holds for the rest of its block only."""
    for node in source.all(ast.Expr):
        if called(node.value) != "torch.compiler.set_stance":
            continue
        above = source.parents[node]
        blocks = (getattr(above, name, []) for name in ("body", "orelse"))
        block = next((own for own in blocks if node in own), [])
        rest = block[block.index(node) + 1 :] if node in block else []
        if "force_eager" in source.of(node) and rest and source.alone(rest):
            pad = source.indent(node)
            yield [
                (*source.span(node), f"with {source.of(node.value)}:"),
                (*source.lines(rest), source.text(rest, pad + STEP)),
            ]


def method_compiled(source: Source, _line: int) -> Changes:
    """``model = torch.compile(model)``, of which another method is called: compile that."""
    methods = {
        function.name: function for function in source.all(Function) if source.class_of(function)
    }
    for call in source.compile_calls():
        node = source.parents[call]
        target = dotted(node.targets[0]) if isinstance(node, ast.Assign) else ""
        if not (isinstance(node, ast.Assign) and target and call.args and source.alone([node])):
            continue
        used = [
            each.func.attr
            for each in source.all(ast.Call)
            if isinstance(each.func, ast.Attribute)
            and dotted(each.func.value) == target
            and each.func.attr in methods
        ]
        rest = "".join(f", {source.of(each)}" for each in call.keywords)
        for method in dict.fromkeys(used):
            inner = {called(each) for each in ast.walk(methods[method])}
            names = ["forward"] if inner & {"self.forward", "self"} else []
            for name in (method, *names):
                first = f"{target} = {source.of(call.args[0])}\n" if source.of(
                    call.args[0]) != target else ""  # fmt: skip
                pad = source.indent(node)
                text = f"{target}.{name} = torch.compile({target}.{name}{rest})\n"
                yield [(*source.lines([node]), (f"{pad}{first}" if first else "") + pad + text)]


def piece_of_generator(source: Source, _line: int) -> Changes:
    """What a compiled generator works out between two yields becomes what is compiled."""
    for function in source.all(Function):
        yields = [
            each for each in ast.walk(function) if isinstance(each, ast.Yield | ast.YieldFrom)
        ]
        if len(yields) != 1 or not source.compiling(function):
            continue
        last = source.parents[yields[0]]
        if not isinstance(last, ast.Expr):
            continue
        value, above = yields[0].value, source.parents[last]
        at_times = isinstance(above, ast.If) and above.body == [last] and not above.orelse
        end: ast.AST = above if at_times else last
        loop = source.parents[end]
        if not (isinstance(loop, ast.For) and loop in function.body and loop.body[-1] is end):
            continue
        # A number of each iteration would compile it again; what else is iterated is handed over.
        body = loop.body[:-1]
        target = stored([loop.target]) if called(loop.iter) in _COUNTED else set()
        while body and loaded(body[:1]) & target:  # what follows the loop's variable stays in it
            body = body[1:]
        if value is None or not body or loaded(body) & target:
            continue
        # What the next iteration begins with is returned as well.
        fresh = stored(loop.body[: loop.body.index(body[0])])
        others = [each for each in function.body if each is not loop]
        known = set(source.parameters(function) or ()) | stored(others)
        carried = stored(body) & ((known - fresh) | loaded(others))
        if not carried and end is last:
            made = source.outlined(function, body, source.of(value), "yield {}")
            if made:
                yield [*made, (*source.lines([last]), "")]
            continue
        names = ", ".join(sorted(carried | (stored(body) & loaded(loop.body[-1:]))))
        made = source.outlined(function, body, names, f"{names} = {{}}")
        yield from [made] if made else []


def without_reset(source: Source, _line: int) -> Changes:
    """Compiled code is kept: ``torch._dynamo.reset()`` goes."""
    found = [
        node
        for node in source.all(ast.Expr)
        if called(node.value) in _RESETS and source.owner(node)
    ]
    if found:
        yield [source.removed(node) for node in found]


def without_mode(source: Source, _line: int) -> Changes:
    """``with FlopCounterMode():`` around the steps goes, if its figures decide nothing."""
    kinds = ast.If | ast.While | ast.IfExp | ast.Assert
    tests = [each.test for each in source.nodes if isinstance(each, kinds)]
    sets = [(dotted(each.targets[0]), each.value) for each in source.all(ast.Assign)]
    deciding = {dotted(node) for test in tests for node in ast.walk(test)}
    for name, value in sets:  # what is worked out of a figure may decide as well
        if name and name in deciding:
            deciding |= {dotted(node) for node in ast.walk(value)}
    for node in source.all(ast.With):
        spans = [source.span(each.context_expr) for each in node.items]
        for at, item in enumerate(node.items):
            own = dotted(item.context_expr)
            made = [item.context_expr, *(value for name, value in sets if name == own != "")]
            if item.optional_vars or not any(called(each).endswith("Mode") for each in made):
                continue
            if own and own in deciding:
                continue
            if at + 1 < len(node.items):
                yield [(spans[at][0], spans[at + 1][0], "")]
            elif at:
                before = node.items[at - 1].optional_vars
                yield [(source.span(before)[1] if before else spans[at - 1][1], spans[at][1], "")]
            elif source.alone([node]):
                yield [(*source.lines([node]), source.text(node.body, source.indent(node)))]


def saved_on_device(source: Source, line: int) -> Changes:
    """``with torch.autograd.graph.save_on_cpu():`` → ``with contextlib.nullcontext():``."""
    for node in source.all(ast.withitem):
        call = node.context_expr
        if called(call).rpartition(".")[2] == "save_on_cpu" and covers(call, line):
            made = (*source.span(call), "contextlib.nullcontext()")
            yield [made, *source.importing("contextlib")]


def counted_in_eager(source: Source, line: int) -> Changes:
    """``with FlopCounterMode() as counter: model(x)`` counts in eager, and compiles nothing.

    Dynamo leaves what it meets under such a mode alone, for good.
    """
    node = source.at(line, ast.With)
    modes = [e for e in node.items if called(e.context_expr).endswith("Mode")] if node else []
    repeated = any(isinstance(each, ast.For | ast.While) for each in ast.walk(node or source.tree))
    if node and modes and not repeated and source.imports("torch"):
        at = source.span(modes[0].context_expr)[0]
        yield [(at, at, 'torch.compiler.set_stance("force_eager"), ')]


_COUNTED_ONCE = '''class _CountedOnce:
    """Counts in its first block, in eager; later blocks take that figure."""

    flops = None

    def __enter__(self):
        self._entered = contextlib.ExitStack()
        if _CountedOnce.flops is None:
            self._entered.enter_context(torch.compiler.set_stance("force_eager"))
            self._counter = self._entered.enter_context(MODE)
        return self

    def __exit__(self, *_):
        self._entered.close()
        if _CountedOnce.flops is None:
            _CountedOnce.flops = self._counter.get_total_flops()

    def get_total_flops(self):
        return _CountedOnce.flops


'''


def counted_once(source: Source, _line: int) -> Changes:
    """``with FlopCounterMode() as counter:`` in a loop counts in the first iteration only."""
    for node in source.all(ast.With):
        item = node.items[0]
        name, mode = dotted(item.optional_vars), called(item.context_expr)
        if not (name and mode.rpartition(".")[2] == "FlopCounterMode"):
            continue
        above: ast.AST | None = source.parents.get(node)
        while above is not None and not isinstance(above, Function | ast.For | ast.While):
            above = source.parents.get(above)
        asked = {
            each.attr
            for each in source.all(ast.Attribute)
            if dotted(each.value) == name and isinstance(each.ctx, ast.Load)
        }
        if asked == {"get_total_flops"} and isinstance(above, ast.For | ast.While):
            at, call = source.top(node), item.context_expr
            made = _COUNTED_ONCE.replace("MODE", source.of(call))
            spans = [(at, at, made), (*source.span(call), "_CountedOnce()")]
            yield [*source.importing("contextlib"), *spans]


def as_python(source: Source, _line: int) -> Changes:
    """``torch.jit.script(module)`` → ``module``; ``trace`` and ``freeze`` as well."""
    calls = [
        call
        for call in source.all(ast.Call)
        if called(call).startswith("torch.jit.") and called(call).endswith(_SCRIPTED) and call.args
    ]
    for node in source.all(ast.Attribute):
        if node.attr in _OF_SCRIPT and dotted(node) != "torch.save":
            return  # TorchScript is what the script wants
    marks = [mark for each in source.all(Function) for mark in each.decorator_list]
    changes = [(*source.lines([mark]), "") for mark in marks if dotted(mark) == "torch.jit.script"]
    for call in calls:
        drawn = {
            called(each).rpartition(".")[2] for rest in call.args[1:] for each in ast.walk(rest)
        }
        if drawn & DRAWS:
            return  # without them later random numbers would be others
        inner: ast.expr = call
        while inner in calls:
            inner = inner.args[0]
        if source.parents[call] not in calls:
            changes.append((*source.span(call), source.of(inner)))
    if changes:
        yield changes


def called_as_module(source: Source, line: int) -> Changes:
    """``net.compile()``, and then ``net.forward(x)``: the module itself is called.

    Also by a method of its own, ``self.forward(x)``. Where it has a ``__call__`` of its own, which
    calls ``forward``, that is what is compiled.
    """
    for node in source.all(ast.Expr):
        call = node.value
        target, _, name = called(call).rpartition(".")
        if node.lineno != line or name != "compile" or not isinstance(call, ast.Call) or call.args:
            continue
        own = any(
            function.name == "__call__" and called(each) == "self.forward"
            for function in source.all(Function)
            for each in ast.walk(function)
        )
        by = (target,) if own else (target, "self")
        direct = [e for e in source.all(ast.Attribute) if dotted(e) in {f"{n}.forward" for n in by}]
        if direct and all(
            isinstance(above := source.parents[each], ast.Call) and above.func is each
            for each in direct
        ):
            yield [(*source.span(each), dotted(each.value)) for each in direct]
            continue
        names = {part for each in source.nodes for part in dotted(each).split(".")}
        if own and target and not names & _COPIES:  # a copy would call the original's weights
            given = "".join(f", {source.of(each)}" for each in call.keywords)
            text = f"{target}.forward = torch.compile({target}.forward{given})"
            yield [(*source.span(node), text)]


def cache_left_alone(source: Source, line: int) -> Changes:
    """A function with a cache of its own is called, not traced, so that its cache is used."""
    names = source.called_at(line)
    for function in source.all(Function):
        marks = [each for each in function.decorator_list if called(each) in _CACHES]
        here = function.name in names or covers(function, line)
        if marks and here and source.imports("torch"):
            at = source.lines([function])[0]
            yield [(at, at, f"{source.indent(function)}@torch.compiler.disable\n")]


def traced_operator(source: Source, line: int) -> Changes:
    """A custom operator that is made of torch's operators is a plain function, and is traced.

    Not one that has a gradient, or kernels, of its own: they may compute something else.
    """
    names = source.called_at(line)
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


# -- results are wrong, or the script fails --------------------------------------------------------


def declared_writes(source: Source, line: int) -> Changes:
    """``mutates_args=()`` of a custom operator names what its function writes into."""
    names = {name.rpartition(".")[2] for name in source.called_at(line)}
    for function in source.all(Function):
        for mark in function.decorator_list:
            if not isinstance(mark, ast.Call) or not called(mark).endswith("custom_op"):
                continue
            operator = next(
                (each.value for each in mark.args if isinstance(each, ast.Constant)), ""
            )
            declared = [each.value for each in mark.keywords if each.arg == "mutates_args"]
            empty = [each for each in declared if isinstance(each, ast.Tuple | ast.List)]
            here = names & {function.name, str(operator).rpartition(":")[2]}
            tensors = [
                each.arg
                for each in function.args.args
                if each.annotation and "Tensor" in source.of(each.annotation)
            ]
            written = _written(function, tensors)
            if here and written and empty and not empty[0].elts:
                text = ", ".join(f'"{name}"' for name in written)
                yield [(*source.span(empty[0]), f"({text},)" if len(written) == 1 else f"({text})")]


def _written(function: Function, given: list[str]) -> list[str]:
    """Arguments that the function writes into, and does not make anything else of."""
    found = set()
    for node in ast.walk(function):
        into: list[ast.expr | None] = []
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            into = [node.value]
        elif isinstance(node, ast.AugAssign):
            into = [node.target]
        elif isinstance(node, ast.Call):
            into = [each.value for each in node.keywords if each.arg == "out"]
            method = node.func if isinstance(node.func, ast.Attribute) else None
            if method and method.attr.endswith("_") and not method.attr.endswith("__"):
                into.append(method.value)
        found |= {dotted(each) for each in into}
    made = (each for each in ast.walk(function) if isinstance(each, ast.Assign))
    other = {dotted(target) for each in made for target in each.targets}
    return [name for name in given if name in found - other]


def twice_in_eager(source: Source, _line: int) -> Changes:
    """What ``autograd.grad(…, create_graph=True)`` is of runs in eager, which has a derivative."""
    for call in source.all(ast.Call):
        again = any(
            each.arg == "create_graph" and source.of(each.value) == "True" for each in call.keywords
        )
        function = source.owner(call)
        if not (again and call.args and called(call).rpartition(".")[2] == "grad" and function):
            continue
        before = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Assign) and each.end_lineno and each.lineno <= call.lineno
        ]
        made = [each for each in before if call in ast.walk(each) and _calls([call.args[0]])]
        names = loaded([call.args[0]])
        for _ in before if not made else ():
            makers = [each for each in before if stored(each.targets) & names]
            made = [each for each in makers if _calls([each.value])]
            if made or not makers:
                break
            names = loaded(each.value for each in makers)
        if len(made) == 1 and source.alone(made) and source.imports("torch"):
            pad = source.indent(made[0])
            head = f'{pad}with torch.compiler.set_stance("force_eager"):\n'
            yield [(*source.lines(made), head + source.text(made, pad + STEP))]


def _calls(values: list[ast.expr]) -> bool:
    """Whether something may be called in them that is no function of torch, and no method."""
    calls = (node for each in values for node in ast.walk(each) if isinstance(node, ast.Call))
    names = {called(call) for call in calls} - PURE
    return any("." not in name or name.startswith("self.") for name in names)


def traced_each_time(source: Source, line: int) -> Changes:
    """What a function gives is no constant: ``@assume_constant_result`` goes."""
    for function in source.all(Function):
        for mark in function.decorator_list:
            marked = called(mark).endswith("assume_constant_result")
            if marked and covers(function, line) and mark.lineno == mark.end_lineno:
                yield [(*source.lines([mark]), "")]


def loaded_inside(source: Source, line: int) -> Changes:
    """``load_state_dict(state, strict=False)`` finds the keys of a compiled module's weights."""
    for call in source.all(ast.Call):
        target = call.func.value if isinstance(call.func, ast.Attribute) else None
        if call.lineno != line or not call.args or not called(call).endswith(".load_state_dict"):
            continue
        owner, state = source.of(target) if target else "", source.of(call.args[0])
        names = '{key.replace("_orig_mod.", ""): value for key, value in %s.items()}'
        yield [(*source.span(call.args[0]), names % state)]
        if target and dotted(target):
            inside = (*source.span(target), f'getattr({owner}, "_orig_mod", {owner})')
            yield [inside]


def compiled_once(source: Source, line: int) -> Changes:
    """``torch.compile(f)(x)`` in a function → ``compiled_f(x)``, made where ``f`` is defined.

    What is compiled is another function each time, as in a loop: torch.compile keeps its results.
    """
    for call in source.compile_calls():
        name = dotted(call.args[0]) if len(call.args) == 1 else ""
        made = [each for each in source.tree.body if isinstance(each, Function)]
        made = [each for each in made if each.name == name and source.alone([each])]
        constant = all(isinstance(each.value, ast.Constant) for each in call.keywords)
        if not covers(call, line) or not constant or source.owner(call) is None:
            continue
        if not made and len(call.args) == 1 and isinstance(call.args[0], ast.Subscript):
            top = next(each for each in source.tree.body if covers(each, line))
            start, new = source.lines([top])[0], "compile_once"
            cached = f"import functools\n\n{new} = functools.cache(torch.compile)\n\n\n"
            if new not in source.globals and dotted(call.func) == "torch.compile":
                yield [(start, start, cached), (*source.span(call.func), new)]
        if len(made) != 1:
            continue
        new, end = f"compiled_{name}", source.lines(made)[1]
        if new not in source.globals:
            yield [(end, end, f"\n\n{new} = {source.of(call)}\n"), (*source.span(call), new)]


def gradients_off(source: Source, line: int) -> Changes:
    """What ``self.part(x)`` calls gets ``requires_grad_(False)`` where ``__init__`` sets it."""
    function = source.function_at(line)
    owner = source.class_of(function) if function is not None else None
    parts = {name for name in source.called_at(line) if name.startswith("self.")}
    for each in ast.walk(owner) if owner is not None else ():
        target = dotted(each.targets[0]) if isinstance(each, ast.Assign) else ""
        if target in parts and isinstance(each, ast.Assign) and source.alone([each]):
            end = source.lines([each])[1]
            yield [(end, end, f"{source.indent(each)}{target}.requires_grad_(False)\n")]
