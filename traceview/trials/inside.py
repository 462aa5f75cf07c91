"""Changes of compiled code: what breaks a graph, what compiles it again, what is slow in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traceview.trials.source import (
    SIGNS,
    STEP,
    Changes,
    Function,
    Source,
    called,
    dotted,
    loaded,
    stored,
)

_DISABLE = ("torch.compiler.disable", "torch._dynamo.disable")
#: Functions for which ATen has kernels of their own, written by hand.
_OF_ITS_OWN = (
    *("F.", "torch.nn.functional.", "nn.functional.", "torch.special."),
    "torch.linalg.",
    *("torch.argmax", "torch.argmin", "torch.digamma", "torch.erfinv", "torch.i0", "torch.igamma"),
)
#: Functions of a tensor whose result has its shape and its (floating) dtype, or its shape alone.
_SAME = frozenset(
    [
        *("abs", "clamp", "clamp_max", "clamp_min", "clone", "contiguous", "cos", "cumprod"),
        *("cumsum", "erf", "exp", "flip", "floor", "log", "log1p", "neg", "relu", "roll", "round"),
        *("sigmoid", "sign", "sin", "softmax", "sqrt", "square", "tanh"),
    ]
)
#: Functions that compute each element by itself.
_EACH = frozenset(
    [
        *("abs", "clamp", "clamp_max", "clamp_min", "cos", "erf", "exp", "expm1", "float", "floor"),
        *("log", "log1p", "neg", "pow", "relu", "round", "rsqrt", "sigmoid", "sign", "sin"),
        *("sqrt", "square", "tanh"),
    ]
)
_INDICES = ("argsort",)
#: They make another number of one.
_OF_NUMBERS = ("int", "round")
_LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log")


# -- graph breaks ----------------------------------------------------------------------------------


def choice_by_where(source: Source, line: int) -> Changes:
    """``if TENSOR: x = a else: x = b`` → ``x = torch.where(TENSOR, a, b)``."""
    node = source.at(line, ast.If)
    if node is None or not _is_comparison(node.test) or not source.alone([node]):
        return
    one, other = _assigned(source, node.body), _assigned(source, node.orelse)
    function = source.function_at(line)
    if one is None or other is None or function is None or not source.imports("torch"):
        return
    before = {
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        if each.lineno < node.lineno
    }
    names = dict.fromkeys((*one, *other))
    known = before | (one.keys() & other.keys()) | set(source.parameters(function) or ())
    if not known.issuperset(names):
        return
    for each in (*node.body, *node.orelse):  # what is set first is not read after that
        if loaded([each]) & (names.keys() - stored([each])):
            return
    pad, test = source.indent(node), source.of(node.test)
    rows = []
    if len(names) > 1:
        rows, test = [f"{pad}taken = {test}\n"], "taken"
    rows += [
        f"{pad}{name} = torch.where({test}, {one.get(name, name)}, {other.get(name, name)})\n"
        for name in names
    ]
    yield [(*source.lines([node]), "".join(rows))]


def condition_by_where(source: Source, _line: int) -> Changes:
    """``torch.cond(p, f, g, (x,))``, which reads p on the host → ``torch.where(p, f(x), g(x))``."""
    for call in source.all(ast.Call):
        match call:
            case ast.Call(args=[test, ast.Name() as yes, ast.Name() as no, ast.Tuple(elts=given)]):
                passed = ", ".join(source.of(each) for each in given)
                text = f"{source.of(test)}, {yes.id}({passed}), {no.id}({passed})"
                if called(call) == "torch.cond":
                    yield [(*source.span(call), f"torch.where({text})")]


def asserted(source: Source, line: int) -> Changes:
    """``if TENSOR: raise …`` → ``torch._assert_async``, unless something catches the error."""
    node = source.at(line, ast.If)
    error = node.body[0] if node and len(node.body) == 1 and not node.orelse else None
    if node is None or not isinstance(error, ast.Raise) or not source.imports("torch"):
        return
    denied = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
    test = node.test.operand if denied else node.test  # type: ignore[attr-defined]
    method = getattr(test.func, "attr", "") if isinstance(test, ast.Call) else ""
    tensor = _is_comparison(test) if isinstance(test, ast.Compare) else method in ("any", "all")
    if tensor and source.alone([node]) and not source.all(ast.ExceptHandler):
        words = error.exc.args[:1] if isinstance(error.exc, ast.Call) else []
        said = [source.of(each) for each in words if isinstance(each, ast.Constant)]
        good = source.of(test) if denied else f"~({source.of(test)})"
        yield [(*source.span(node), f"torch._assert_async({', '.join([good, *said])})")]


def masked_sums(source: Source, line: int) -> Changes:
    """``x[mask].mean()`` → the sum of ``torch.where(mask, x, 0)`` over the number in the mask.

    Also with arithmetic in between, by way of names.
    """
    function = source.function_at(line)
    chosen = [each for each in source.all(ast.Subscript) if each.lineno == line]
    masks = [each.slice for each in chosen if isinstance(each.slice, ast.Compare | ast.Name)]
    if function is None or len(masks) != 1 or not source.imports("torch"):
        return
    nodes = list(ast.walk(function))
    set_once = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    same = [
        node
        for node in nodes
        if isinstance(node, ast.Subscript) and ast.dump(node.slice) == ast.dump(masks[0])
    ]
    mask = source.of(masks[0])
    waiting: list[ast.expr] = [*same]
    changes = [(*source.span(node), source.of(node.value)) for node in same]
    while waiting:
        part: ast.expr = waiting.pop()
        while (whole := _of_elements(source, part)) is not None:
            part = whole
        above = source.parents[part]
        begin, end = source.span(part)
        if isinstance(above, ast.Assign) and [type(each) for each in above.targets] == [ast.Name]:
            name = above.targets[0].id  # type: ignore[attr-defined]
            if set_once.count(name) != 1:
                return
            uses = (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
            waiting += [node for node in uses if node.id == name]
            continue
        call = source.parents[above]
        if not (isinstance(above, ast.Attribute) and above.attr in ("sum", "mean")):
            return
        if not isinstance(call, ast.Call) or call.args or call.keywords:
            return
        wrapped = [(begin, begin, f"torch.where({mask}, "), (end, end, ", 0)")]
        if above.attr == "mean":
            first, last = source.span(call)
            wrapped = [(first, first, "("), *wrapped, (last, last, f" / ({mask}).sum())")]
            wrapped.append((source.span(above)[1] - len("mean"), source.span(above)[1], "sum"))
        changes += [change for change in wrapped if change not in changes]
    yield changes


def _of_elements(source: Source, part: ast.expr) -> ast.expr | None:
    """What is computed of each element of ``part`` by itself, if that is what comes next."""
    node = source.parents[part]
    if isinstance(node, ast.Attribute) and node.attr in _EACH:
        call = source.parents[node]
        return call if isinstance(call, ast.Call) and call.func is node else None
    if isinstance(node, ast.Call):
        owner, _, name = dotted(node.func).rpartition(".")
        return node if part in node.args and owner in ("torch", "F") and name in _EACH else None
    return node if isinstance(node, ast.BinOp | ast.UnaryOp) else None


def every_iteration(source: Source, line: int) -> Changes:
    """A loop over a range without the test that ends it early."""
    node = source.at(line, ast.If)
    loop = source.parents.get(node) if node else None
    if (
        isinstance(node, ast.If)
        and isinstance(loop, ast.For)
        and isinstance(loop.iter, ast.Call)
        and dotted(loop.iter.func) == "range"
        and not (loop.orelse or node.orelse)
        and [type(each) for each in node.body] == [ast.Break]
        and len(loop.body) > 1
        and _is_comparison(node.test)
        and source.alone([node])
    ):
        yield [(*source.lines([node]), "")]


def quiet_while_compiling(source: Source, line: int) -> Changes:
    """``print(…)`` and calls of a logger run in eager only."""
    function, here = source.function_at(line), source.at(line, ast.Expr)
    if function is None or here is None or not _is_message(here) or not source.imports("torch"):
        return
    found = (node for node in ast.walk(function) if isinstance(node, ast.Expr))
    lines = [node for node in found if _is_message(node) and source.alone([node])]
    yield [
        (
            *source.lines([node]),
            f"{source.indent(node)}if not torch.compiler.is_compiling():\n"
            + source.text([node], source.indent(node) + STEP),
        )
        for node in lines
    ]


def enabled_again(source: Source, line: int) -> Changes:
    """A function without its ``@torch.compiler.disable``."""
    marked = {
        function: marks
        for function in source.all(Function)
        if (marks := [d for d in function.decorator_list if called(d) in _DISABLE])
    }
    names = {node.id for node in source.all(ast.Name) if node.lineno == line}
    names |= {node.attr for node in source.all(ast.Attribute) if node.lineno == line}
    here = [
        function
        for function, marks in marked.items()
        if function.name in names or marks[0].lineno <= line < function.body[0].lineno
    ]
    for function in here or (marked if len(marked) == 1 else ()):
        yield [(*source.lines([mark]), "") for mark in marked[function]]


def loss_alone(source: Source, line: int) -> Changes:
    """What leads to ``loss.backward()`` in a compiled function becomes what is compiled."""
    function = source.function_at(line)
    if function is None or not source.is_entry(function):
        return
    for index, node in enumerate(function.body):
        value = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            continue
        loss = value.func.value
        if value.func.attr == "backward" and isinstance(loss, ast.Name):
            first = index
            while first and isinstance(function.body[first - 1], ast.Assign):
                first -= 1
            region = function.body[first:index]
            later = sorted(stored(region) & loaded(function.body[index:]))
            result = ", ".join(later)
            if loss.id in later:
                made = source.outlined(function, region, result, f"{result} = {{}}")
                yield from [made] if made else []
            return


def index_kept(source: Source, line: int) -> Changes:
    """``table[i]`` of a tensor of one integer, without reading its value."""
    function = source.function_at(line)
    given = source.parameters(function) if function else None
    found = [
        node
        for node in source.all(ast.Subscript)
        if node.lineno == line
        and isinstance(node.slice, ast.Name)
        and node.slice.id in (given or ())
        and isinstance(node.ctx, ast.Load)
        and dotted(node.value)
    ]
    if found:
        yield [
            (
                *source.span(node),
                f"{source.of(node.value)}.index_select(0, {source.of(node.slice)}"
                ".reshape(1)).squeeze(0)",
            )
            for node in found
        ]


def pooled_apart(source: Source, line: int) -> Changes:
    """A pooling that one line calls is left to eager: what its windows read is stored."""
    return called_apart(source, line, "pool")


def solved_apart(source: Source, line: int) -> Changes:
    """Eigenvalues that one line asks for are left to eager: it computes no vectors with them."""
    return called_apart(source, line, "linalg.eigvals")


def called_apart(source: Source, line: int, part: str = "") -> Changes:
    """A function of torch's that one line calls, with ``part`` in its name, is left to eager."""
    calls = [
        node
        for node in source.all(ast.Call)
        if node.lineno == line and dotted(node.func).startswith(_OF_ITS_OWN)
        if part in dotted(node.func)
    ]
    if len(calls) == 1 and source.imports("torch"):
        name = f"_eager_{dotted(calls[0].func).rpartition('.')[2]}"
        at = source.top(calls[0])
        text = f"{name} = torch.compiler.disable({source.of(calls[0].func)})\n\n\n"
        yield [(at, at, text), (*source.span(calls[0].func), name)]


def with_fake(source: Source, _line: int) -> Changes:
    """A custom operator whose result is surely like its first argument gets a fake of that."""
    for function in source.all(Function):
        marks = [d for d in function.decorator_list if called(d) == "torch.library.custom_op"]
        names, last = source.parameters(function), function.body[-1]
        if not marks or not names:
            continue
        if dotted(function.args.args[0].annotation) not in ("Tensor", "torch.Tensor"):
            continue
        if len(function.body) == 1 + (ast.get_docstring(function) is not None) and _is_like(
            last.value if isinstance(last, ast.Return) else None, names[0]
        ):
            end = source.lines([function])[1]
            text = f"\n\n@{function.name}.register_fake\ndef _({', '.join(names)}):\n"
            yield [(end, end, f"{text}{STEP}return torch.empty_like({names[0]})\n")]


def _is_simple(statement: ast.stmt) -> bool:
    """Whether it runs whenever the function does, whole."""
    plain = isinstance(statement, ast.Assign | ast.AugAssign | ast.Return | ast.Expr)
    inner = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.GeneratorExp, ast.DictComp)
    return plain and not any(isinstance(each, inner) for each in ast.walk(statement))


def _is_like(value: ast.expr | None, name: str) -> bool:
    """Whether it is the tensor ``name`` with functions applied that keep its shape and dtype."""
    if isinstance(value, ast.Name):
        return value.id == name
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    inner, method = value.func.value, value.func.attr
    if dotted(inner) == "torch" and value.args:
        inner = value.args[0]
    if method == "to" and [dotted(each) for each in value.args] == [f"{name}.dtype"]:
        while isinstance(inner, ast.Call) and called(inner).rpartition(".")[2] in _INDICES:
            inner = inner.args[0] if dotted(inner.func).startswith("torch.") else inner.func.value  # type: ignore[attr-defined]
        return _is_like(inner, name)
    return method in _SAME and _is_like(inner, name)


# -- recompiles ------------------------------------------------------------------------------------


def worked_out_outside(source: Source, line: int) -> Changes:
    """What a compiled function looks up or calls with its arguments is handed to it instead."""
    for function, value in _lookups(source, line):
        given, handed = source.parameters(function), source.handed_on(function)
        if given is None or handed is None or not source.is_entry(function):
            continue
        if not source.alone([function]):
            continue
        values = [n for n in ast.walk(function) if isinstance(n, ast.expr)
                  and ast.dump(n) == ast.dump(value)]  # fmt: skip
        inside = {id(node) for each in values for node in ast.walk(each)}
        body = [each for each in ast.walk(function) if id(each) not in inside]
        kept = {n.id for n in body if isinstance(n, ast.Name)}
        own = given[:1] == ["self"]
        passed = [name for name in given[own:] if name in kept]
        name, new = f"_{function.name.strip('_')}_compiled", "given"
        always = (ast.Expr(n.test) if isinstance(n, ast.If) else n for n in function.body)
        plain = any(value in ast.walk(each) for each in always if _is_simple(each))
        names = loaded([value])
        if new in kept or not plain or not names & set(given) or names & stored(function.body):
            continue
        pad = source.indent(function)
        head = f"def {name}({', '.join([*(['self'] if own else []), *passed, new])}):\n"
        changes = [(*source.span(each), new) for each in values]
        text = source.text(function.body, pad + STEP, *changes)
        marks = "".join(f"{pad}@{mark}\n" for mark in handed[0])
        call = f"{'self.' if own else ''}{name}({', '.join([*passed, source.of(value)])})"
        end = source.lines([function])[1]
        yield [
            (*source.lines(function.body), f"{pad}{STEP}return {call}\n"),
            *handed[1],
            (end, end, f"\n{'' if pad else chr(10)}{marks}{pad}{head}{text}"),
        ]


def made_once(source: Source, _line: int) -> Changes:
    """A function that makes a class or function on each call keeps what it made."""
    made = {
        function.name: function
        for function in source.all(Function)
        if isinstance(source.parents[function], ast.Module) and not function.decorator_list
        and any(isinstance(each, ast.FunctionDef | ast.ClassDef) for each in function.body)
        and isinstance(function.body[-1], ast.Return)
        and called(function.body[-1].value) in
        {each.name for each in function.body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    }  # fmt: skip
    used = {called(part) for call in source.all(ast.Call) if isinstance(call, ast.Call)
            for part in (*call.args, *(each.value for each in call.keywords))
            if isinstance(part, ast.Call)}  # fmt: skip
    for name in sorted(made.keys() & used):
        at = source.lines([made[name]])[0]
        yield [*source.importing("functools"), (at, at, "@functools.cache\n")]


def kept_outside(source: Source, line: int) -> Changes:
    """``self.items.append(x)`` in compiled code goes through a function that is not compiled."""
    node = source.at(line, ast.Expr)
    call = node.value if node else None
    function = source.function_at(line)
    if (
        function is None
        or node is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "append"
        or call.keywords
        or not source.imports("torch")
    ):
        return
    whole = dotted(call.func.value)
    owner, _, attribute = whole.partition(".")
    inside = stored(ast.walk(function)) | set(source.parameters(function) or [owner])
    is_global = not attribute and owner in source.globals and owner not in inside
    if not is_global and (owner != "self" or not attribute or "." in attribute):
        return
    name = f"_append_{attribute or owner}"
    head = f"def {name}({'value' if is_global else 'owner, value'}):\n"
    line_of = f"{whole if is_global else f'owner.{attribute}'}.append(value)\n"
    at = source.top(node)
    text = f"@torch.compiler.disable\n{head}{STEP}{line_of}\n\n"
    begin = source.span(call.func)
    value = "" if is_global else "self, "
    yield [(at, at, text), (begin[0], begin[1] + 1, f"{name}({value}")]


# -- what the patterns have in common --------------------------------------------------------------


def _lookups(source: Source, line: int) -> Iterator[tuple[Function, ast.expr]]:
    """What is looked up, called or looked for with arguments of the function around ``line``."""
    inner = source.function_at(line)
    whole = inner.name if inner and isinstance(source.parents[inner], ast.Module) else None
    values: list[tuple[ast.expr, ast.expr]] = [
        (node, node.func)
        for node in source.all(ast.Call)
        if whole is not None and dotted(node.func) == whole
    ]
    for node in source.all(ast.Subscript):
        above = source.parents[node]
        if node.lineno == line:  # a function may be what is looked up, and called
            called_too = isinstance(above, ast.Call) and above.func is node
            values.append((above if called_too else node, node.value))  # type: ignore[arg-type]
    known = source.globals | {each.name for each in source.all(Function)}
    for value, owner in values:
        function = source.owner(value)
        given = source.parameters(function) if function else None
        if function is None or given is None or dotted(owner) == function.name:
            continue
        names = loaded([value]) - (known - set(given))
        if dotted(owner) in known - set(given) and names and names <= set(given) - {"self"}:
            yield function, value
    given = source.parameters(inner) if inner is not None else None
    for call in source.all(ast.Call):  # Dynamo works it out while compiling
        names = loaded([call]) - {dotted(call.func)}
        worked_out = dotted(call.func) in _OF_NUMBERS and names <= set(given or ()) - {"self"}
        if inner is not None and source.owner(call) is inner and worked_out:
            yield inner, call
    for test in source.all(ast.Compare):  # ``key in table``: what else is in there decides nothing
        asks = len(test.ops) == 1 and isinstance(test.ops[0], ast.In | ast.NotIn)
        asks &= loaded([test]) <= set(given or ()) - {"self"}
        if asks and inner is not None and source.owner(test) is inner:
            yield inner, test


def _is_comparison(test: ast.expr) -> bool:
    """Whether it can be a tensor's truth: one comparison, or ``x.any()``."""
    signs = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(test.ops[0], signs)
    return isinstance(test, ast.Call) and called(test).rpartition(".")[2] in ("any", "all")


def _assigned(source: Source, block: list[ast.stmt]) -> dict[str, str] | None:
    """Name → text of what it is set to, of a block that only sets names."""
    found: dict[str, str] = {}
    for node in block:
        target = node.target if isinstance(node, ast.AugAssign) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]  # type: ignore[assignment]
        if not isinstance(target, ast.Name) or loaded([node]) & found.keys() or target.id in found:
            return None
        text = source.of(node.value)  # type: ignore[attr-defined]
        if isinstance(node, ast.AugAssign):
            sign = SIGNS.get(type(node.op))
            if sign is None:
                return None
            text = f"{target.id} {sign} ({text})"
        found[target.id] = text
    return found


def _is_message(node: ast.Expr | ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    owner, _, name = called(call).rpartition(".")
    return called(call) in ("print", "warnings.warn") or (
        name in _LEVELS and any(part in owner.lower() for part in ("log", "lgr"))
    )
