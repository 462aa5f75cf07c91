"""Asked of the target's interpreter with ``-c``: what it is, and whether the target can be run.

Neither torch nor the user's code is imported: versions and names are read as text. Standard library
only, in a syntax that an interpreter which is too old can still read and answer with its version.
``os.path`` and ``open`` throughout: importing pathlib takes 7 ms more, at every start.

argv: ``script``, ``module`` or ``none``; the target; names of environment variables to look for in
Inductor's configuration. Answers with one line on stdout: ``MARK`` and a JSON object.
"""

import importlib.util
import json
import os
import re
import sys
import traceback

MARK = "traceview-answer:"


def find(name: str, path: "list[str] | None" = None) -> "importlib.machinery.ModuleSpec | None":
    """A module's spec; unlike importlib.util.find_spec it never imports the parent package."""
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec(name, path) if find_spec else None
        if spec is not None:
            return spec  # type: ignore[no-any-return]  # a finder may be of any class
    return None


def read(folder: str, *parts: str) -> str:
    """A text file's content, empty where there is none."""
    try:
        with open(os.path.join(folder, *parts), encoding="utf-8", errors="replace") as file:  # noqa: PTH118, PTH123
            return file.read()
    except OSError:
        return ""


def version_in(text: str) -> "str | None":
    """The value of ``__version__ = "…"``."""
    match = re.search(r"^__version__\s*(?::[^=\n]*)?=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return match.group(1) if match else None


def torch_facts(switches: "list[str]") -> "dict[str, object]":
    """torch's version, the names TORCH_LOGS knows, which of ``switches`` Inductor reads."""
    spec = find("torch")
    if spec is None or not spec.origin:
        return {"torch_version": None}
    folder = os.path.dirname(spec.origin)  # noqa: PTH120
    names = re.findall(
        r"register_(?:log|artifact)\(\s*['\"](\w+)['\"]",
        read(folder, "_logging", "_registrations.py"),
    )
    inductor = read(folder, "_inductor", "config.py")
    return {
        "torch_version": version_in(read(folder, "version.py")),
        "torch_folder": folder,
        "log_names": sorted(set(names)),
        "switches": [name for name in switches if '"' + name + '"' in inductor],
    }


def syntax_facts(path: str) -> "dict[str, object]":
    """Python's own words about a file that it can't compile; empty where all is well."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            source = file.read()
    except OSError as error:
        return {"problem": "unreadable", "text": error.strerror}
    if b"\0" in source[:1024]:  # a zip application or bytecode: Python runs those too
        return {}
    try:
        compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        text = "".join(traceback.format_exception_only(type(error), error))
        return {"problem": "syntax", "text": text, "line": getattr(error, "lineno", None)}
    return {}


def script_facts(script: str) -> "dict[str, object]":
    """The script's own folder, as CPython would put it on sys.path, and what is wrong with it."""
    real = os.path.realpath(script)
    if os.path.isdir(real):  # noqa: PTH112
        facts = syntax_facts(os.path.join(script, "__main__.py"))  # noqa: PTH118
        return dict(facts, script_root=real)
    python = os.path.isfile(real) and not script.endswith(".ipynb")  # noqa: PTH113
    facts = syntax_facts(script) if python else {}
    return dict(facts, script_root=os.path.dirname(real))  # noqa: PTH120


def module_facts(name: str) -> "dict[str, object]":
    """The folder of the module's top package, and what is wrong with it."""
    path = root = spec = None
    parts = name.split(".")
    for depth in range(len(parts)):
        spec = find(".".join(parts[: depth + 1]), path)
        if spec is None:
            return {"problem": "missing", "text": name}
        try:
            path = list(spec.submodule_search_locations or ())
        except KeyError:  # nested namespace package: its path needs the parent imported
            return {"script_root": root}
        if depth == 0:
            root = path[0] if path else os.path.dirname(spec.origin or "")  # noqa: PTH120
    if path:
        spec = find(name + ".__main__", path)
        if spec is None:
            return {"problem": "package", "text": name}
    source = spec.origin if spec and spec.origin and spec.origin.endswith(".py") else None
    return dict(syntax_facts(source) if source else {}, script_root=root)


def main(kind: str, target: str, switches: "list[str]") -> "dict[str, object]":
    """All facts; ``sys.path[0]`` is what it will be when the target runs."""
    facts = {"python_version": list(sys.version_info[:3]), "prefix": sys.prefix}  # type: dict[str, object]
    if not getattr(sys.flags, "safe_path", False):
        own = os.path.dirname(os.path.realpath(target)) if kind == "script" else os.getcwd()  # noqa: PTH109, PTH120
        sys.path.insert(0, own)
    facts.update(torch_facts(switches))
    if kind == "script":
        facts.update(script_facts(target))
    elif kind == "module":
        facts.update(module_facts(target))
    return facts


if __name__ == "__main__":
    sys.stdout.write("\n" + MARK + json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3:])) + "\n")
