"""Remedies on trial: the script's own calls with something switched, in turns with calls as usual.

While a trial is on, every function that Dynamo has compiled runs on a copy of its code. So torch
compiles it again, under the trial's settings, and what was compiled before is as it was when the
trial is off: torch keeps compiled code, and the count against its recompile limit, by code object.
A patch of the user's file is tried the same way: the copy has the changed code.
"""

from __future__ import annotations

import importlib
import re
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial, reduce
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from .also import Also, NoFunction, in_blocks
from .clock import gpu_in_use
from .compiles import (
    Counts,
    caches_in,
    copied,
    copies,
    debug_in,
    forget_caches,
    more_variants,
    plain_compile,
    stance_aside,
    stance_in_force,
    variants_of_torchs_own,
)
from .config import Config
from .frames import Frames
from .memory import Memory
from .padding import NotPadded, Padding, channels_last, marked, weights_laid_out
from .patches import Changed, NotPatched, changed_functions, functions
from .recorder import Recorder, said
from .regions import hide_from_dynamo, target_of
from .settings import Remedy, Setting
from .state import Control, Gate

_LIMIT = re.compile(r"torch\._dynamo\.config\.(?:recompile_limit|cache_size_limit)=(\d+)")
#: What belongs to Inductor alone: another backend takes neither.
_INDUCTORS = ("mode", "options")


class NotApplicable(Exception):
    """Why a remedy can't be tried in this process."""


class Trials:
    """All remedies of this process; `Stances` switches the current one on and off."""

    def __init__(
        self,
        torch: Any,
        frames: Frames,
        control: Control,
        recorder: Recorder,
        memory: Memory,
        config: Config,
    ) -> None:
        self._torch, self._frames, self._control = torch, frames, control
        self._recorder, self._memory = recorder, memory
        self._remedies = {each["name"]: each for each in config.trials}
        given = ((each["name"], each.get("settings") or ()) for each in config.trials)
        self._settings = [(name, str(setting)) for name, settings in given for setting in settings]
        self._caches, self._debug = config.trial_caches, config.trial_debug
        self._throughout = config.throughout
        self._begun = 0
        self._began: Counts | None = None
        self._timed: dict[str, Any] | None = None
        self._ended: set[str] = set()
        self._compile_s = defaultdict[str, float](float)  # of those that are begun again
        self.measured: list[Trial] = []
        self.current: Trial | None = None

    @property
    def over(self) -> bool:
        """Whether the current trial, if there is one, can't go on."""
        return self.current is not None and self.current.why is not None

    @property
    def left(self) -> list[str]:
        """Names of those that have not ended yet."""
        return [name for name in self._remedies if name not in self._ended]

    @property
    def variants(self) -> dict[str, int]:
        """Names of those with another recompile limit, and that."""
        return {n: int(found[1]) for n, each in self._settings if (found := _LIMIT.fullmatch(each))}

    def leave(self, step: int) -> None:
        """End what compiles functions outside of the script's callables: replays call none."""
        outside = {name for name, each in self._settings if each.startswith("compile=")}
        if self.current is not None and self.current.name in outside:
            self.end(step, state="unfinished")
        self._ended |= outside

    @property
    def all_timed(self) -> bool:
        """Whether of the current one all is measured but how it compiles again."""
        return self._timed is not None

    def drop(self, step: int) -> None:
        """The current one is begun again later, or not at all, unless its blocks are complete."""
        if self.all_timed:
            self.end(step)
        if self.current is not None and self._began is not None:
            spent = self._began.since(self._control)["compile_s"]
            self._compile_s[self.current.name] = max(spent, self._compile_s[self.current.name])
        self.current = None

    def begin(self, name: str) -> None:
        """Make it the current one; where that fails it is over at once."""
        self._memory.peaks.clear()
        self._begun += 1  # one that is begun again has empty caches again
        folder = f"{self._begun}-{re.sub(r'[^A-Za-z0-9_.=-]', '_', name)}"
        caches, debug = (root and Path(root, folder[:80]) for root in (self._caches, self._debug))
        self.current = Trial(self._torch, self._frames, name, caches or None, debug or None)
        self.current.throughout = self._throughout
        if caches:
            forget_caches()
        self._began, self._timed = Counts.now(self._control), None
        self._recorder.write("trial_begin", name=name)
        try:
            self.current.prepare(Remedy.from_json(self._remedies[name]), self._control)
        except (NotApplicable, NoFunction, NotPatched, LookupError, ValueError) as why:
            self.current.end("not_applicable", str(why))
        except Exception as error:  # noqa: BLE001 - the script must run whatever fails here
            self.current.end("failed", said(error))

    def keep(self, stances: Any) -> None:
        """The only one is on from the first torch.compile call to the end of the process.

        What it can't be tried with, and what fails with it, ends the script.
        """
        self.begin(self.left[0])
        if self.current is None or self.over:
            return self.end(-1)
        stances.keep(self.current)
        self.current = None

    def compile_again(self, step: int) -> None:
        """All else is measured: the current one compiles once more, with what its caches hold."""
        trial, peak = self.current, self._memory.peaks.get("trial") or 0
        if trial is None or self._began is None:
            return
        self._timed = self._found(step)
        self._began = Counts.now(self._control)
        # Its graphs, and what they keep on a GPU, are there twice then.
        room = not self._memory.device or self._torch.cuda.mem_get_info()[0] > peak
        trial.compile_again(possible=room)
        forget_caches()

    def end(self, step: int, *, state: str = "measured", why: str | None = None) -> None:
        """Write the ``trial`` event of the current one."""
        trial, self.current = self.current, None
        if trial is None or self._began is None:
            return
        trial.end(state, why)
        self._ended.add(trial.name)
        if trial.state in ("measured", "unfinished"):
            self.measured.append(trial)
        found, self._timed = self._timed or self._found(step), None
        # Begun again, it finds in caches what it has compiled before.
        found["compile_s"] = max(found["compile_s"], self._compile_s[trial.name])
        again = {}
        if trial.compiled_again:
            known = self._began.since(self._control)
            again = {f"warm_{name}": known[name] for name in ("compiles", "compile_s")}
        debug = trial.debug if trial.debug is not None and trial.debug.is_dir() else None
        self._recorder.write(
            "trial",
            name=trial.name,
            state=trial.state,
            why=trial.why or None,
            debug=debug and str(debug),
            **found,
            **again,
        )

    def _found(self, step: int) -> dict[str, Any]:
        """Counts and peaks of the current one so far."""
        peaks = dict(self._memory.peaks)
        return {
            "peak_bytes": peaks.pop("trial", None),
            "baseline_peak_bytes": next(iter(peaks.values()), None),
            "step": step,
            **(self._began.since(self._control) if self._began else {}),
        }


class Trial:
    """One remedy in this process. ``why``: it is over; empty where nothing went wrong."""

    def __init__(
        self,
        torch: Any,
        frames: Frames,
        name: str,
        caches: Path | None = None,
        debug: Path | None = None,
    ) -> None:
        self._torch = torch
        self._frames = frames
        self._caches, self.debug = caches, debug
        self.name = name
        self.remedy = Remedy(name)
        self.state = "unfinished"
        self.why: str | None = None
        self.compiled_again = self._timed = False
        self._backends = object()
        self._others = 0  # variants of code that can't be copied: they count against torch's limit
        self._gates: weakref.WeakSet[Gate] = weakref.WeakSet()
        self._codes: list[Changed] = []
        self.also: list[Also] = []
        self._copies: dict[int, CodeType] = {}
        self._targets: weakref.WeakKeyDictionary[Gate, Callable[..., Any]] = (
            weakref.WeakKeyDictionary()
        )
        self._stack: ExitStack | None = None
        self.checked = False  # outputs are being compared with eager's
        self.throughout = False  # it is on as long as the process lives

    def end(self, state: str, why: str | None) -> None:
        """The first end counts; what fails when all is timed is no end."""
        if state == "measured" and (uncalled := [a.name for a in self.also if a.calls < 2]):
            state, why = "not_applicable", f"{uncalled[0]}() is not called in the steps"
        if self._timed and why:
            self.compiled_again = False
        elif self.why is None:
            self.state, self.why = state, why or ""

    def prepare(self, remedy: Remedy, control: Control) -> None:
        """Find out whether it can be tried; nothing is switched yet."""
        self.remedy, self._gates = remedy, control.gates
        if remedy.named("env"):
            raise NotApplicable("it is set before the process starts")
        if remedy.named("stance") and stance_in_force() == "default":
            raise NotApplicable("the script has set no stance that could be put aside")
        if remedy.patch is not None:
            self._codes = changed_functions(remedy.patch)
        make = partial(Also, self._torch, self._frames, control, self)
        self.also = [make(name) for name in remedy.named("function")]
        self._codes += [(each.function, each.function.__code__, each.code) for each in self.also]
        changed = {id(function) for function, _, _ in self._codes}
        self._copies, self._others = copies(self._frames), variants_of_torchs_own(self._frames)
        for each in self.also:
            self._copies.pop(id(each.function.__code__), None)
        self._codes += [
            (function, function.__code__, self._copies[id(function.__code__)])
            for function in functions()
            if id(function.__code__) in self._copies and id(function) not in changed
        ]
        unknown = set(remedy.named("eager")) - {self._name_of(g.original) for g in control.gates}
        if unknown and not self.throughout:  # what it names may come later
            raise NotApplicable(f"no compiled callable is named {sorted(unknown)[0]}")
        blocks = sorted(remedy.named("blocks"))
        if blocks and not any(self._blocks(gate.original) for gate in control.gates):
            raise NotApplicable(f"no compiled module holds a {blocks[0]}")
        with self.switched():
            pass

    def compile_again(self, *, possible: bool) -> None:
        """Forget what was compiled, while this is off: the next calls compile it once more."""
        self._timed, self.compiled_again = True, possible
        self._backends, self._others = object(), variants_of_torchs_own(self._frames)
        self._targets.clear()
        for each in self.also:
            each.forget()
        self._copies = {key: copied(code) for key, code in self._copies.items()}
        self._codes = [
            (function, code, self._copies.get(id(code)) or copied(new))
            for function, code, new in self._codes
        ]

    def on(self) -> None:
        """Switch the settings on, until `off`."""
        stack = self._stack = ExitStack()
        stack.enter_context(self.switched())
        stack.enter_context(debug_in(None if self._timed else self.debug))

    def off(self) -> None:
        """Back to the script's own."""
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    def target(self, gate: Gate) -> Callable[..., Any]:
        """What the gate calls while this is on."""
        found = self._targets[gate] = self._targets.get(gate) or self._guarded(gate)
        return found

    def compiled(self, original: Any, how: Mapping[str, Any]) -> Callable[..., Any]:
        """``original``, compiled as the script does it but for the settings."""
        if self._name_of(original) in self.remedy.named("eager"):
            return self.within(original)
        if blocks := self._blocks(original):
            calls = [(vars(b), self.compiled_alone(b._call_impl, how)) for b in blocks]
            return self.within(in_blocks(original, calls), original)
        result = self.compiled_alone(original, how)
        call = result.forward if isinstance(original, self._torch.nn.Module) else result
        inner = getattr(call, "_torchdynamo_orig_callable", None)
        if type(inner) is FunctionType and id(inner.__code__) in self._copies:
            inner.__code__ = self._copies[id(inner.__code__)]  # torch has just made this function
        return self.within(call, original)

    def compiled_alone(self, original: Any, how: Mapping[str, Any] | None = None) -> Any:
        """What torch.compile gives under the settings, with nothing around its calls."""
        with self._own_backends():
            return plain_compile(self._torch)(original, **self._arguments(how or {}))

    @property
    def runs(self) -> bool:
        """Whether compiled code is to run: nothing went wrong, all that is asked is possible."""
        return self.why is None and self.compiled_again == self._timed

    def _blocks(self, original: Any) -> list[Any]:
        """Modules inside of ``original`` that are to be compiled in its place."""
        names, module = self.remedy.named("blocks"), getattr(original, "__self__", original)
        if not names or not isinstance(module, self._torch.nn.Module):
            return []
        inside = (each for each in module.modules() if each is not module)
        return [each for each in inside if type(each).__name__ in names]

    @contextmanager
    def _own_backends(self) -> Iterator[None]:
        """Let what torch.compile makes now be no other call's backend, whatever their arguments.

        torch runs compiled code again where guards hold and backends are equal. Code of torch's own
        functions can't be copied: torch knows some of them by their code.
        """
        torch, backends = self._torch, self._backends
        with ExitStack() as stack:
            for name in ("_TorchCompileInductorWrapper", "_TorchCompileWrapper"):
                plain = getattr(torch, name, None)
                if plain is None:
                    continue

                class Own(plain):  # type: ignore[misc, valid-type]
                    _trial = backends
                    __hash__ = plain.__hash__

                    def __eq__(self, other: object) -> bool:
                        same = super().__eq__(other)
                        return bool(same) and getattr(other, "_trial", None) is self._trial

                stack.callback(setattr, torch, name, plain)
                setattr(torch, name, Own)
            yield

    def within(self, call: Callable[..., Any], original: Any = None) -> Callable[..., Any]:
        """``call`` with what is entered around it, and inputs laid out as asked."""
        around, last = self._around(), "channels_last" in self.remedy.named("around")
        pads = [each for each in self.remedy.settings if each.kind == "pad"]
        if names := self.remedy.named("static").get("static"):
            call = marked(self._torch, call, original or call, names)
        if not around and not last and not pads:
            return call
        padding = Padding(self._torch, pads, call, original or call) if pads else None

        def inside(*args: Any, **kwargs: Any) -> Any:
            if last:
                args, kwargs = channels_last((args, kwargs), self._torch)
            with ExitStack() as stack:
                for make in around:
                    stack.enter_context(make())
                if padding is not None:
                    return padding(args, kwargs, always=self.checked)
                return call(*args, **kwargs)

        hide_from_dynamo(inside)
        return inside

    def _guarded(self, gate: Gate) -> Callable[..., Any]:
        if self._name_of(gate.original) in self.remedy.named("eager"):
            return gate.original
        call: Callable[..., Any] | None = None
        owner = weakref.ref(gate)

        def guarded(*args: Any, **kwargs: Any) -> Any:
            nonlocal call
            found = owner()
            eager = found.original if found is not None else None
            if self.throughout:
                call = call or self.compiled(eager, found.how if found is not None else {})
                return call(*args, **kwargs)
            if self.runs:
                try:
                    call = call or self.compiled(eager, found.how if found is not None else {})
                    return call(*args, **kwargs)
                except (NotApplicable, NotPadded) as why:
                    self.end("not_applicable", str(why))
                except Exception as error:  # noqa: BLE001 - the remedy's, unless eager raises it too
                    self.end("failed", said(error))
            return eager(*args, **kwargs)  # type: ignore[misc]

        hide_from_dynamo(guarded)
        return guarded

    def _name_of(self, original: Any) -> str:
        """As the report names the callable."""
        return str(target_of(original, self._torch.nn.Module)["name"])

    def _arguments(self, how: Mapping[str, Any]) -> dict[str, Any]:
        """torch.compile's arguments."""
        remedy, given = self.remedy, dict(how)
        asked, options = remedy.named("compile"), remedy.named("option")
        if remedy.named("guards"):
            skip = getattr(self._torch.compiler, "skip_guard_on_all_nn_modules_unsafe", None)
            if skip is None:
                raise NotApplicable("this torch can't leave guards out (2.8 or newer can)")
            options["guard_filter_fn"] = skip
        if asked.get("mode") is not None:
            given["options"] = None
        if options:
            mode = asked.pop("mode", None) or given.get("mode")
            own = dict(given.get("options") or {})
            if mode not in (None, "default"):
                own = dict(self._torch._inductor.list_mode_options(mode))
            given |= {"mode": None, "options": own | options}
        elif given.get("options"):
            given["options"] = dict(given["options"])  # torch takes some out
        given |= asked
        if given.get("backend", "inductor") != "inductor" and "backend" in asked:
            given = {name: value for name, value in given.items() if name not in _INDUCTORS}
        return given

    def _around(self) -> list[Callable[[], AbstractContextManager[Any]]]:
        torch = self._torch
        found: list[Callable[[], AbstractContextManager[Any]]] = []
        for name, value in self.remedy.named("around").items():
            if name == "autocast":
                dtype = getattr(torch, str(value), None)
                device = "cuda" if gpu_in_use(torch) else "cpu"
                found.append(partial(torch.autocast, device, dtype=dtype))
            elif name == "sdpa":
                backend = getattr(torch.nn.attention.SDPBackend, str(value), None)
                if backend is None:
                    raise NotApplicable(f"torch has no attention backend {value}")
                found.append(partial(torch.nn.attention.sdpa_kernel, backend))
            elif name in ("no_grad", "inference_mode"):
                found.append(getattr(torch, name))
        return found

    @contextmanager
    def switched(self) -> Iterator[None]:
        """Codes and settings of the process; all back at the end, whatever happens."""
        with ExitStack() as stack:
            stack.enter_context(caches_in(self._caches))
            for setting in self.remedy.settings:
                self._switch(setting, stack)
            stack.enter_context(more_variants(self._others))
            for each in self.also:
                each.put_in(stack)
            for function, _, other in self._codes:
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = other
            yield

    def _switch(self, setting: Setting, stack: ExitStack) -> None:
        torch = self._torch
        if setting.kind == "config":
            config: Any = importlib.import_module(setting.owner)
            try:
                stack.enter_context(config.patch({setting.name: setting.value}))
            except (AttributeError, KeyError) as error:
                name = f"{setting.owner}.{setting.name}"
                raise NotApplicable(f"this torch has no setting {name}") from error
        elif setting.kind == "attribute":
            within = setting.owner.split(".")[1:]
            owner = reduce(lambda found, part: getattr(found, part, None), within, torch)
            if not hasattr(owner, setting.name):
                raise NotApplicable(f"this torch has no {setting.owner}.{setting.name}")
            stack.callback(setattr, owner, setting.name, getattr(owner, setting.name))
            setattr(owner, setting.name, setting.value)
        elif setting.name == "detect_anomaly":
            stack.enter_context(torch.autograd.set_detect_anomaly(setting.value))
        elif setting.kind == "process":
            write = getattr(torch, f"set_{setting.name}")
            stack.callback(write, getattr(torch, f"get_{setting.name}")())
            write(setting.value)
        elif setting.kind == "stance":
            stack.enter_context(stance_aside())
        elif setting.kind == "form":
            from .forms import in_place_of  # reads torch

            stack.enter_context(in_place_of(setting.name, setting.value))
        elif setting.name == "channels_last":
            for gate in list(self._gates):
                module = getattr(gate.original, "__self__", gate.original)
                if not isinstance(module, self._torch.nn.Module):
                    raise NotApplicable("channels_last needs a compiled module")
                weights_laid_out(module, self._torch, stack)
