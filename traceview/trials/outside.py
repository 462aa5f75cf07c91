"""Changes outside of compiled code: what is compiled as well, what copies are, what is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

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

_COPIERS = ("copy.deepcopy", "deepcopy", "pickle.loads")
#: Methods of a module that return it.
_KEEP_MODULE = ("cpu", "cuda", "eval", "requires_grad_", "to", "train")
#: Calls that only work out a result, of values.
_PURE_METHODS = frozenset(
    [
        *("count", "decode", "encode", "endswith", "float", "index", "items", "keys", "long"),
        *("lower", "lstrip", "replace", "rstrip", "split", "startswith", "strip", "upper"),
        "values",
    ]
)
#: Calls that end a graph, or whose time is none of tensors' work; methods begin with a point.
_BREAKS = frozenset(
    [
        *("float", "input", "int", "json.loads", "open", "print", ".backward", ".compile", ".cpu"),
        *(".item", ".numpy", ".step", ".tolist", ".zero_grad"),
    ]
)
#: Names of operators, of a tensor or of torch's modules.
_ON_TENSORS = frozenset(
    [
        *(".abs", ".addcmul", ".amax", ".amin", ".arange", ".bmm", ".cat", ".clamp", ".clip"),
        *(".conv1d", ".conv2d", ".cos", ".cross_entropy", ".cumsum", ".einsum", ".exp", ".expand"),
        *(".flip", ".gather", ".gelu", ".layer_norm", ".lerp", ".linear", ".log", ".log1p"),
        *(".log_softmax", ".logsumexp", ".masked_fill", ".matmul", ".maximum", ".mean"),
        *(".minimum", ".mm", ".mul", ".norm", ".outer", ".permute", ".pow", ".prod", ".relu"),
        *(".reshape", ".roll", ".rsqrt", ".scatter", ".sigmoid", ".sign", ".silu", ".sin"),
        *(".softmax", ".softplus", ".sqrt", ".square", ".stack", ".std", ".sub", ".sum"),
        *(".tanh", ".topk", ".transpose", ".tril", ".triu", ".unsqueeze", ".var", ".where"),
    ]
)
#: Methods that give views of parts of a tensor.
_PARTS = ("chunk", "split", "unbind")
#: Fewer calls of operators than this are no work to fuse.
FEW_OPERATORS = 3
_GROWS = frozenset(
    [
        *("add", "append", "clear", "discard", "extend", "insert", "pop", "popleft", "remove"),
        "update",
    ]
)


def copy_compiled(source: Source, line: int) -> Changes:
    """``member = copy.deepcopy(model)``: the copy is compiled as the model is."""
    node = source.at(line, ast.Assign)
    if node is None or len(node.targets) != 1 or not (target := dotted(node.targets[0])):
        return
    value: ast.AST | None = node.value
    while isinstance(value, ast.Call) and called(value) not in _COPIERS:
        inside = value.func if isinstance(value.func, ast.Attribute) else None
        value = inside.value if inside is not None and inside.attr in _KEEP_MODULE else None
    inner = [
        each
        for each in source.all(ast.Call)
        if isinstance(each.func, ast.Attribute) and each.func.attr == "compile"
        if called(each).partition(".")[0] not in ("re", "torch")
    ]
    given = {", ".join(source.of(each) for each in call.keywords) for call in inner}
    same = all(isinstance(k.value, ast.Constant) for call in inner for k in call.keywords)
    if any(call.args for call in inner) or len(given) != 1 or not same:
        return
    if isinstance(value, ast.Call) and source.alone([node]):
        end = source.lines([node])[1]
        yield [(end, end, f"{source.indent(node)}{target}.compile({given.pop()})\n")]


def remembered(source: Source, line: int) -> Changes:
    """A function of Python that gives the same for the same arguments keeps its results.

    Attributes that change are arguments, too.
    """
    for function in source.all(Function):
        owner = source.class_of(function)
        loaders = any(called(each).endswith("DataLoader") for each in source.all(ast.Call))
        here = covers(function, line) or (loaders and function.name == "__getitem__")
        given = source.parameters(function)
        if not here or owner is None or not given or function.decorator_list:
            continue
        read = _read_only(source, function, given)
        if read is None or not source.alone([function]):
            continue
        others = [each for each in owner.body if isinstance(each, Function)]
        changing = sorted(_changed_attributes(others) & read)
        if _grown_attributes(others) & read:
            continue
        at = source.lines([function])[0]
        pad = source.indent(function)
        mark = f"{pad}@functools.lru_cache(maxsize=None)\n"
        if not changing:
            yield [*source.importing("functools"), (at, at, mark)]
            continue
        if set(changing) & set(given):
            continue
        name = f"_{function.name.strip('_')}_of"
        uses = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and dotted(node) in {f"self.{a}" for a in changing}
        ]
        body = source.text(function.body, pad + STEP, *((*source.span(n), n.attr) for n in uses))
        passed = [*given[1:], *(f"self.{each}" for each in changing)]
        head = f"def {name}({', '.join([*given, *changing])}):\n"
        call = f"{pad}{STEP}return self.{name}({', '.join(passed)})\n"
        end = source.lines([function])[1]
        yield [
            *source.importing("functools"),
            (*source.lines(function.body), call),
            (end, end, f"\n{mark}{pad}{head}{body}"),
        ]


def parsed_once(source: Source, line: int) -> Changes:
    """Text that is decoded again and again keeps its result, where nothing changes the result."""
    function = source.function_at(line)
    calls = [
        call
        for call in (ast.walk(function) if function else ())
        if isinstance(call, ast.Call) and called(call) == "json.loads" and len(call.args) == 1
    ]
    if function is None or len(calls) != 1 or not source.imports("json"):
        return
    target = source.parents[calls[0]]
    if not isinstance(target, ast.Assign) or not isinstance(target.targets[0], ast.Name):
        return
    uses = [
        source.parents[node]
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == target.targets[0].id
        if isinstance(node.ctx, ast.Load)
    ]
    reads = all(
        (isinstance(use, ast.Subscript) and isinstance(use.ctx, ast.Load))
        or (isinstance(use, ast.Call) and called(use) in PURE)
        for use in uses
    )
    if uses and reads:
        at = source.top(function)
        yield [
            *source.importing("functools"),
            (at, at, "_loads = functools.cache(json.loads)\n\n\n"),
            (*source.span(calls[0].func), "_loads"),
        ]


def caller_compiled(source: Source, line: int) -> Changes:
    """A compiled function that one other calls again and again: that one is compiled instead."""
    functions = (each for each in source.all(Function) if source.compiling(each))
    names = {called(each) for each in source.all(ast.Call) if each.lineno == line}
    for function in functions:
        calls = [each for each in source.all(ast.Call) if dotted(each.func) == function.name]
        owners = {source.owner(each) for each in calls}
        caller = owners.pop() if len(owners) == 1 else None
        marks = source.compiling(function)
        here = (
            function.name in names or covers(function, line) or any(covers(m, line) for m in marks)
        )
        if caller is None or not here:
            continue
        loops = [each for each in ast.walk(caller) if isinstance(each, ast.For)]
        looped = all(any(call in ast.walk(loop) for loop in loops) for call in calls)
        if (
            (looped or len(calls) > 1)
            and not caller.decorator_list
            and _qualified(source, caller)
            and _captured(caller)
        ):
            at = source.lines([caller])[0]
            new = "".join(f"{source.indent(caller)}@{source.of(each)}\n" for each in marks)
            yield [*((*source.lines([each]), "") for each in marks), (at, at, new)]


def compiled_too(source: Source, line: int) -> Iterator[str]:
    """Functions that hold the tensors' work of ``line``, as ``compile=`` names them.

    What the line calls, what its nested function is given to, then what it is in. None that is
    nested, reads values on the host, writes messages or makes a whole training step: Dynamo would
    break its graph there.
    """
    named = ((_qualified(source, each), each) for each in source.all(Function))
    functions = {name: each for name, each in named if name}
    around = source.function_at(line)
    owner = source.class_of(around) if around else None
    torchs = {
        each.asname or each.name: f"{node.module}.{each.name}"
        for node in source.all(ast.ImportFrom)
        if (node.module or "").startswith("torch.")
        for each in node.names
        if each.name.islower()
    }
    for other in source.tree.body:  # by another name
        if isinstance(other, ast.Assign) and dotted(other.value) in torchs:
            torchs[dotted(other.targets[0])] = torchs[dotted(other.value)]
    own = around.name if around is not None else None
    calls = source.all(ast.Call)
    here = [called(each) for each in calls if covers(each, line)]
    given = [called(each) for each in calls if any(dotted(a) == own for a in each.args)]
    for name in dict.fromkeys([*here, *(each for each in given if each in torchs)]):
        if owner is not None and name.startswith("self."):
            name = f"{owner.name}.{name.removeprefix('self.')}"
        if name in torchs:
            yield torchs[name]
        elif name in functions and _is_tensors_work(source, functions[name]):
            yield name
    whole = _qualified(source, around) if around is not None else ""
    if around is not None and whole and _is_tensors_work(source, around):
        yield whole


def _qualified(source: Source, function: Function) -> str:
    """Its name in the module; of one that is nested deeper, nothing."""
    above = source.parents.get(function)
    if isinstance(above, ast.Module):
        return function.name
    top = isinstance(above, ast.ClassDef) and isinstance(source.parents.get(above), ast.Module)
    return f"{above.name}.{function.name}" if top and isinstance(above, ast.ClassDef) else ""


def _is_tensors_work(source: Source, function: Function) -> bool:
    """Whether it computes with tensors, by the names of what it calls, and does nothing else."""
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    methods = [f".{each.attr}" for each in calls if isinstance(each, ast.Attribute)]
    found = [each for each in methods if each.endswith("_") or each in _ON_TENSORS]
    plain = not source.compiling(function) and not function.name.startswith("__")
    return plain and _captured(function) and len(found) >= FEW_OPERATORS


def _captured(function: Function) -> bool:
    """Whether nothing in its own text ends a graph."""
    nodes = [node for node in ast.walk(function) if node is not function]
    others = ast.Yield | ast.YieldFrom | ast.Await | ast.FunctionDef
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    methods = {f".{each.func.attr}" for each in calls if isinstance(each.func, ast.Attribute)}
    names = {called(each) for each in calls}
    return not (any(isinstance(node, others) for node in nodes) or _BREAKS & (names | methods))


def _read_only(source: Source, function: Function, given: list[str]) -> set[str] | None:
    """Attributes of ``self`` that it reads; None if it may do more than work out a result.

    Or if others than methods of its class may change what it reads.
    """
    nodes = list(ast.walk(function))
    if not any(isinstance(node, ast.Return) and node.value is not None for node in nodes):
        return None
    own, read = stored(nodes) - set(given), set()
    for node in nodes:
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.Global | ast.Nonlocal):
            return None
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return None
        if isinstance(node, ast.Call) and not _only_works_out(node, own):
            return None
        if isinstance(node, ast.Attribute) and dotted(node).startswith("self."):
            read.add(dotted(node).split(".")[1])
    changed = {
        node.attr
        for node in source.all(ast.Attribute)
        if isinstance(node.ctx, ast.Store) and dotted(node.value) != "self"
    }
    declared = {name for node in source.all(ast.Global) for name in node.names}
    return None if changed & read or declared & loaded(nodes) else read


def _only_works_out(call: ast.Call, own: set[str]) -> bool:
    """Whether it has no effect but on the function's ``own`` names, and depends on nothing else."""
    owner, _, name = called(call).rpartition(".")
    if owner in ("math", "torch"):
        return name not in DRAWS and not name.endswith("_")
    if owner in own and name in ("append", "extend"):
        return True
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return (not owner and name in PURE) or method in _PURE_METHODS or called(call) == "json.loads"


def _changed_attributes(methods: list[Function]) -> set[str]:
    """Attributes of ``self`` that other methods than ``__init__`` set."""
    return {
        node.attr
        for method in methods
        if method.name != "__init__"
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and dotted(node.value) == "self"
    }


def _grown_attributes(methods: list[Function]) -> set[str]:
    """Attributes of ``self`` whose contents other methods change."""
    found = set()
    for method in methods:
        for node in ast.walk(method) if method.name != "__init__" else ():
            parts = called(node).split(".") if isinstance(node, ast.Call) else []
            if len(parts) == 3 and parts[0] == "self" and parts[2] in _GROWS:
                found.add(parts[1])
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                found |= {dotted(node.value).partition(".")[2]}
    return found


def worked_out_once(source: Source, line: int) -> Changes:
    """What a method works out of attributes that only ``__init__`` sets is worked out there."""
    function = source.function_at(line)
    owner = source.class_of(function) if function else None
    begun = [each for each in getattr(owner, "body", ()) if getattr(each, "name", "") == "__init__"]
    for node in source.all(ast.Return) + source.all(ast.Assign):
        value = node.value
        if function is None or value is None or not begun or not covers(node, line):
            continue
        calls = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
        read = {
            n.attr
            for n in ast.walk(value)
            if isinstance(n, ast.Attribute) and dotted(n.value) == "self"
        }
        pure = calls and all(
            _only_works_out(each, set()) and not called(each).startswith("torch.") for each in calls
        )
        known = loaded([value]) <= {"self"} | PURE
        set_there = {n.attr for n in ast.walk(begun[0]) if isinstance(n, ast.Attribute)}
        if not (pure and known and read and read <= set_there) or read & _changed(source, begun[0]):
            continue
        name = f"_{function.name.strip('_')}_of_{'_'.join(sorted(read))}"
        last = begun[0].body[-1]
        if function is begun[0] or not source.alone([last]) or value.lineno != value.end_lineno:
            continue
        end = source.lines([last])[1]
        made = f"{source.indent(last)}self.{name} = {source.of(value)}\n"
        yield [(end, end, made), (*source.span(value), f"self.{name}")]


def _changed(source: Source, but: ast.AST) -> set[str]:
    """Attributes that anything except ``but`` sets, or whose contents it may change."""
    found, inside = set(), set(ast.walk(but))
    for node in source.nodes:
        if node in inside:
            continue
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found.add(dotted(node.value).rpartition(".")[2])
        if isinstance(node, ast.Call) and called(node).rpartition(".")[2] in _GROWS:
            found.add(called(node).split(".")[-2] if "." in called(node) else "")
    return found


def tensors_of_their_own(source: Source, _line: int) -> Changes:
    """``a, b = pair.unbind(2)`` → copies, which share no memory; nothing else uses ``pair``."""
    for node in source.all(ast.Assign):
        call, names = node.value, node.targets[0]
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        whole = dotted(call.func.value)
        uses = [each for each in source.all(ast.Name) if each.id == whole]
        alone = sum(isinstance(each.ctx, ast.Load) for each in uses) == 1
        if isinstance(names, ast.Tuple) and call.func.attr in _PARTS and alone:
            yield [(*source.span(call), f"(part.clone() for part in {source.of(call)})")]


def written_apart(source: Source, line: int) -> Changes:
    """``x[i, 2:4] = y`` into an argument, or an attribute, is left to eager.

    It writes no more than that.
    """
    function, name = source.function_at(line), "_write"
    if function is None or name in loaded(source.nodes) or not source.imports("torch"):
        return
    given = source.parameters(function) or ()
    writes = [
        (node, target)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        if isinstance(target := node.targets[0], ast.Subscript)
        if dotted(target.value) in given or dotted(target.value).startswith("self.")
    ]
    body = f"def {name}(x, index, value):\n{STEP}x[index] = value\n\n\n"
    at, changes = source.top(function), []
    for node, target in writes:
        into, index = dotted(target.value), _index_text(source, target.slice)
        changes.append((*source.span(node), f"{name}({into}, {index}, {source.of(node.value)})"))
    if changes:
        yield [(at, at, f"@torch.compiler.disable\n{body}"), *changes]


def _index_text(source: Source, index: ast.expr) -> str:
    """An index as an expression of its own."""
    if isinstance(index, ast.Tuple):
        return f"({', '.join(_index_text(source, each) for each in index.elts)})"
    if isinstance(index, ast.Slice):
        ends = (index.lower, index.upper, index.step)
        return f"slice({', '.join(source.of(each) if each else 'None' for each in ends)})"
    return source.of(index)
