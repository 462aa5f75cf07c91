"""Changes of what compiled code calls, runs in, and reads or writes a part of.

Operators, transforms, contexts, switches; slices.
"""

from __future__ import annotations

import ast

from traceview.derive.syntax import covers
from traceview.torchtext.fx import ATTENTION
from traceview.trials.source import (
    SIGNS,
    SIMPLE,
    STEP,
    Change,
    Changes,
    Function,
    Source,
    called,
    dotted,
    loaded,
    stored,
)

#: Of a function they make another one, which runs it on tensors that Dynamo can't start in; and one
#: that is applied at once.
_TRANSFORMS = frozenset(["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "vmap"])
_APPLIED = "jvp"
_CLOCKS = frozenset(["monotonic", "perf_counter", "perf_counter_ns", "process_time", "time"])
#: What makes a tensor that is filled later: of another one's shape, or of sizes.
_LIKE = frozenset(["empty_like", "zeros_like"])
_OF_SIZES = frozenset(["empty", "new_empty", "new_zeros", "zeros"])
#: Attention with queries, keys, values and a mask.
_WITH_MASK = 4
#: They return a changed copy, and with an underscore change the tensor.
_COPYING = frozenset(
    {"index_add", "index_copy", "index_fill", "index_put"}
    | {"masked_fill", "masked_scatter", "scatter", "scatter_add"}
)
#: What an index by a row's number is made of.
_ARITHMETIC = (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.expr_context)
_TO_FLOAT32 = [("float", []), ("to", ["torch.float32"]), ("to", ["torch.float"])]
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Try, ast.Yield, ast.YieldFrom)


def transform_compiled(source: Source, _line: int) -> Changes:
    """``vmap(grad(f))`` of a compiled ``f``: what the outermost transform gives is compiled."""
    for outer in source.all(ast.Call):
        inner: ast.expr = outer
        while isinstance(inner, ast.Call) and inner.args:
            if _transform(source, inner) in ("", _APPLIED):
                break
            inner = inner.args[0]
        name = inner.id if isinstance(inner, ast.Name) else ""
        if not name or inner is outer or not isinstance(source.parents[outer], ast.Assign):
            continue
        uses = [each for each in source.all(ast.Name) if each.id == name]
        if sum(isinstance(each.ctx, ast.Load) for each in uses) != 1:
            continue  # who else calls it wants it compiled
        found: list[tuple[ast.expr, Change]] = []
        for function in source.all(Function):
            if function.name == name:
                marks = source.compiling(function)
                found += [(mark, (*source.lines([mark]), "")) for mark in marks]
        for call in source.compile_calls():
            above = source.parents[call]
            if isinstance(above, ast.Assign) and dotted(above.targets[0]) == name and call.args:
                found.append((call, (*source.span(call), source.of(call.args[0]))))
        keywords = getattr(found[0][0], "keywords", []) if len(found) == 1 else None
        if keywords is None or not all(isinstance(k.value, ast.Constant) for k in keywords):
            continue
        rest = "".join(f", {source.of(each)}" for each in keywords)
        begin, end = source.span(outer)
        yield [found[0][1], (begin, begin, "torch.compile("), (end, end, f"{rest})")]


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
    owners = [owner]
    if not owner:
        imported = (
            (node.module, each) for node in source.all(ast.ImportFrom) for each in node.names
        )
        same = (module for module, e in imported if e.name == name and e.asname in (None, name))
        owners = [module or "" for module in same]
    known = any(o in ("torch.func", "functorch") or (o, name) == ("torch", "vmap") for o in owners)
    return name if known and (name in _TRANSFORMS or name == _APPLIED) else ""


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


# -- parts of a tensor -----------------------------------------------------------------------------


class _Filling:
    """A loop over ``range(N)`` that writes one part of a tensor of its function in each turn."""

    def __init__(
        self, source: Source, loop: ast.For, write: ast.Assign, function: Function
    ) -> None:
        self._source, self._loop, self._write, self._function = source, loop, write, function
        part = write.targets[0]
        self.part = part if isinstance(part, ast.Subscript) else None
        self.name = dotted(self.part.value) if self.part else ""

    @property
    def turns(self) -> str:
        """N; empty where each turn may not write, or the loop has no such end."""
        call, loop = self._loop.iter, self._loop
        if loop.orelse or any(isinstance(each, _LEAVES) for each in ast.walk(loop)):
            return ""
        if not isinstance(call, ast.Call) or dotted(call.func) != "range" or call.keywords:
            return ""
        return self._source.of(call.args[0]) if len(call.args) == 1 else ""

    @property
    def axis(self) -> int | None:
        """The dimension that the loop's variable alone indexes; all of the others is written."""
        if self.part is None or not isinstance(self._loop.target, ast.Name):
            return None
        index = self.part.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        rest = ast.dump(ast.Slice())
        own = [n for n, each in enumerate(parts) if dotted(each) == self._loop.target.id]
        others = [each for n, each in enumerate(parts) if n not in own]
        plain = all(ast.dump(each) == rest for each in others)
        return own[0] if len(own) == 1 and plain else None

    @property
    def made(self) -> ast.Assign | None:
        """What makes the tensor, in the block of the loop."""
        above = self._source.parents[self._loop]
        block: list[ast.stmt] = getattr(above, "body", [])
        for node in block[: block.index(self._loop)] if self._loop in block else ():
            if isinstance(node, ast.Assign) and [dotted(each) for each in node.targets] == [
                self.name
            ]:
                return node
        return None

    @property
    def shape(self) -> str | None:
        """What makes the list's result refuse another size; None where it may have one."""
        call, source = self.made.value if self.made else None, self._source
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        if {each.arg for each in call.keywords} - {"device", "dtype"}:
            return None
        if any(not dotted(k.value).endswith(f".{k.arg}") for k in call.keywords):
            return None  # a dtype of its own: a list keeps that of its parts
        if call.func.attr in _LIKE and len(call.args) == 1:
            model = dotted(call.args[0])
            changed = model in stored(ast.walk(self._function))
            return f".view_as({model})" if model and not changed else None
        sizes = call.args
        if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
            sizes = sizes[0].elts
        known = call.func.attr in _OF_SIZES and self.axis is not None and self.axis < len(sizes)
        return "" if known and source.of(sizes[self.axis or 0]) == self.turns else None

    @property
    def is_only_use(self) -> bool:
        """Whether nothing else reads or writes the tensor before the loop has ended."""
        end = self._source.lines([self._loop])[1]
        used = [
            node
            for node in ast.walk(self._function)
            if isinstance(node, ast.Name) and node.id == self.name
        ]
        early = [node for node in used if self._source.span(node)[0] < end]
        return len(early) == 2 and [type(n.ctx) for n in used].count(ast.Store) == 1

    @property
    def changes_parts(self) -> bool:
        """Whether the loop writes in place to what a list would keep, not copy."""
        names = loaded([self._write.value])
        if isinstance(self._write.value, ast.Constant):
            return True
        for node in ast.walk(self._loop):
            written: ast.AST | None = None
            if isinstance(node, ast.AugAssign):
                written = node.target
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                written = node.value if node is not self.part else None
            elif isinstance(node, ast.Call) and called(node).endswith("_"):
                written = node.func
            elif isinstance(node, ast.keyword) and node.arg == "out":
                written = node.value
            inside = (each.id for each in ast.walk(written or node) if isinstance(each, ast.Name))
            if written is not None and not names.isdisjoint(inside):
                return True
        return False


def stacked(source: Source, line: int) -> Changes:
    """A loop that fills ``out[:, t] = x`` part by part → a list, and one ``torch.stack``.

    Where the loop may leave parts of it, nothing changes, or torch refuses the result's size.
    """
    write = source.at(line, ast.Assign)
    loop = source.parents.get(write) if write else None
    function = source.owner(write) if write else None
    if write is None or function is None or not isinstance(loop, ast.For):
        return
    found = _Filling(source, loop, write, function)
    axis, made, shape = found.axis, found.made, found.shape
    if axis is None or made is None or shape is None or not found.turns:
        return
    if write not in loop.body or not source.alone([write]) or not source.imports("torch"):
        return
    if found.is_only_use and not found.changes_parts:
        along = f", {axis}" if axis else ""
        after, name = source.lines([loop])[1], found.name
        yield [
            (*source.span(made.value), "[]"),
            (*source.span(write), f"{name}.append({source.of(write.value)})"),
            (after, after, f"{source.indent(loop)}{name} = torch.stack({name}{along}){shape}\n"),
        ]


def kept_as_rows(source: Source, line: int) -> Changes:
    """A tensor that loops write and read row by row (``x[n] = f(x[n - 1])``) → a list of its rows.

    What uses all of it after them gets ``torch.stack`` of the list.
    """
    write = source.at(line, ast.Assign)
    function = source.owner(write) if write else None
    target = write.targets[0] if write and len(write.targets) == 1 else None
    if write is None or function is None or not isinstance(target, ast.Subscript):
        return
    name, nodes = dotted(target.value), list(ast.walk(function))
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    stores = [node for node in names if not isinstance(node.ctx, ast.Load)]
    made = source.parents[stores[0]] if len(stores) == 1 else None
    if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call):
        return
    loops = [each for each in nodes if isinstance(each, ast.For) and write in ast.walk(each)]
    if not loops or not source.imports("torch"):
        return
    ranges = (each for each in nodes if isinstance(each, ast.For) and called(each.iter) == "range")
    counters = {dotted(each.target) for each in ranges}
    end = max(source.lines([each])[1] for each in loops)
    changes = [(*source.span(made.value), f"list({source.of(made.value)}.unbind(0))")]
    read = False  # or `stacked` does it
    for use in names:
        above = source.parents[use]
        if isinstance(above, ast.Subscript) and above.value is use:
            read |= isinstance(above.ctx, ast.Load)
            plain = all(isinstance(each, _ARITHMETIC) for each in ast.walk(above.slice))
            if not plain or not loaded([above.slice]) <= counters:
                return
        elif use not in stores:
            if source.span(use)[0] < end:
                return  # all of it, before the rows are complete
            changes.append((*source.span(use), f"torch.stack({name})"))
    if read:
        yield changes


def assigned_to_part(source: Source, line: int) -> Changes:
    """``x[a:b] += y`` → ``x[a:b] = x[a:b] + (y)``, in all of the function.

    And ``view[i] = y`` of ``view = x.t()`` → ``x[:, i] = y``. Inductor then writes in place.
    """
    function = source.function_at(line)
    nodes = list(ast.walk(function)) if function else []
    changes = [
        (*source.span(node), f"{target} = {target} {sign} ({source.of(node.value)})")
        for node in nodes
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript)
        if (node.lineno == line or _has_slice(node.target)) and _is_plain(node.target)
        if (sign := SIGNS.get(type(node.op))) and (target := source.of(node.target))
    ]
    if any(source.line_of(begin) == line for begin, _, _ in changes):
        yield changes
        return
    views = {
        dotted(node.targets[0]): node.value.func.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if isinstance(node.value.func, ast.Attribute) and dotted(node.value.func.value)
        if node.value.func.attr == "t" and not node.value.args
    }
    names = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    write = source.at(line, ast.Assign)
    part = write.targets[0] if write else None
    if isinstance(part, ast.Subscript) and (view := dotted(part.value)) in views:
        base = views[view]
        whole = not isinstance(part.slice, ast.Tuple) and not _has_slice(part)
        if whole and names.count(view) == 1 and not loaded([base]) & set(names):
            index = f"{source.of(base)}[:, {source.of(part.slice)}]"
            yield [(*source.span(part), index)]


def written_at_offset(source: Source, line: int) -> Changes:
    """``inner[i, j] = y`` of ``inner = x[a:b, c:d]`` → ``x[i + a, j + c] = y``."""
    write, function = source.at(line, ast.Assign), source.function_at(line)
    part = write.targets[0] if write else None
    if function is None or not isinstance(part, ast.Subscript):
        return
    index, made = _items(part), source.values(dotted(part.value), function)
    for whole in (each for each in made if isinstance(each, ast.Subscript)):
        begins = [e.lower for e in _items(whole) if isinstance(e, ast.Slice) and e.step is None]
        simple = all(isinstance(each, SIMPLE) for each in (*index, *filter(None, begins)))
        if simple and len(index) == len(begins) == len(_items(whole)):
            pairs = zip(map(source.of, index), begins, strict=True)
            moved = [f"{at} + {source.of(begin)}" if begin else at for at, begin in pairs]
            yield [(*source.span(part), f"{source.of(whole.value)}[{', '.join(moved)}]")]


def scattered(source: Source, line: int) -> Changes:
    """``total.index_add_(0, i, y)`` → ``scatter_add_`` with ``i`` for every element of a row."""
    for call in source.all(ast.Call):
        func, given = call.func, call.args
        first = isinstance(func, ast.Attribute) and len(given) == 3 and source.of(given[0]) == "0"
        if not (first and isinstance(func, ast.Attribute) and call.lineno == line):
            continue
        if func.attr in ("index_add", "index_add_") and dotted(func.value) and not call.keywords:
            total, index = source.of(func.value), source.of(given[1])
            ones = f"[1] * ({total}.dim() - 1)"
            index = index if dotted(given[1]) else f"({index})"
            whole = f"{index}.view(-1, *{ones}).expand(-1, *{total}.shape[1:])"
            end = source.span(func)[1]
            name = (end - len(func.attr), end, func.attr.replace("index", "scatter"))
            yield [name, (*source.span(given[1]), whole)]


def _items(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _has_slice(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Slice) for each in ast.walk(node))


def _is_plain(node: ast.Subscript) -> bool:
    """Whether it is the same when it is written twice."""
    return bool(dotted(node.value)) and not any(
        isinstance(each, ast.Call | ast.NamedExpr | ast.Await) for each in ast.walk(node)
    )


# -- reads -----------------------------------------------------------------------------------------


def laid_out(source: Source, line: int) -> Changes:
    """``x[:, ::2]`` is copied in eager: compiled code then reads neighbours, with vectors."""
    function, name = source.function_at(line), "_laid_out"
    if function is None or not source.imports("torch") or not source.is_entry(function):
        return
    given = set(source.parameters(function) or ())
    found = [
        node.value
        for node in function.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript)
        if dotted(node.value.value) in given and _is_plain(node.value)
        if any(
            isinstance(each, ast.Slice) and each.step and ast.unparse(each.step) != "1"
            for each in ast.walk(node.value.slice)
        )
    ]
    marked = [(*source.span(node), f"{name}({source.of(node)})") for node in found]
    yield from _in_eager(source, function, name, "x.contiguous()", marked)


def converted_first(source: Source, line: int) -> Changes:
    """``x.float()`` of an argument is done in eager: compiled code then has float32 alone."""
    function, name = source.function_at(line), "_as_float32"
    if function is None or not source.imports("torch") or not source.is_entry(function):
        return
    given = set(source.parameters(function) or ())
    found = [
        (source.span(call), dotted(call.func.value))
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if (call.func.attr, [dotted(each) for each in call.args]) in _TO_FLOAT32
    ]
    marked = [(*span, f"{name}({argument})") for span, argument in found if argument in given]
    yield from _in_eager(source, function, name, "x.float()", marked)


def _in_eager(
    source: Source, function: Function, name: str, result: str, marked: list[Change]
) -> Changes:
    """``marked`` places of ``function`` call a new ``name(x)``, which is never traced."""
    if marked and name not in loaded(source.nodes):
        at = source.top(function)
        head = f"@torch.compiler.disable\ndef {name}(x):\n{STEP}return {result}\n\n\n"
        yield [(at, at, head), *marked]


def copied_first(source: Source, line: int) -> Changes:
    """A slice that a call at ``line`` gets, ``x = scene[:, a:b]``, is copied where it is made.

    Its memory is aligned then, and only the slice is copied, not all that it spans. The call may
    get a part of it: ``x[i]``.
    """
    calls = [each for each in source.all(ast.Call) if covers(each, line)]
    given = [getattr(each, "value", each) for call in calls for each in call.args]
    for name in sorted({each.id for each in given if isinstance(each, ast.Name)}):
        made = source.values(name, source.function_at(line))
        if len(made) == 1 and isinstance(made[0], ast.Subscript) and _has_slice(made[0]):
            end = source.span(made[0])[1]
            yield [(end, end, ".clone()")]


def causal_without_mask(source: Source, line: int) -> Changes:
    """``scaled_dot_product_attention(q, k, v, attn_mask=m)`` → ``(q, k, v, is_causal=True)``."""
    for call in source.all(ast.Call):
        given = {each.arg: each for each in call.keywords}
        if called(call).rpartition(".")[2] != ATTENTION or not covers(call, line):
            continue
        by_place = call.args[-1] if len(call.args) == _WITH_MASK else None
        mask = given.get("attn_mask", by_place)
        if mask is not None and "is_causal" not in given:
            yield [(*source.span(mask), "is_causal=True")]


def written_in_place(source: Source, line: int) -> Changes:
    """``table = table.index_copy(0, at, rows)`` → ``table = table.index_copy_(0, at, rows)``."""
    node = source.at(line, ast.Assign)
    call = node.value if node is not None and len(node.targets) == 1 else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    owner = dotted(call.func.value)
    if call.func.attr in _COPYING and owner and owner == dotted(node.targets[0]):  # type: ignore[union-attr]
        end = source.span(call.func)[1]
        yield [(end, end, "_")]
