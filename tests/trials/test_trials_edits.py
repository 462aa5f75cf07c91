"""Changes that are written from the user's source: each pattern, and what is nearly one."""

import ast
from textwrap import dedent

import pytest
import torch
from msgspec.structs import replace
from test_trials_remedies import finding

from traceview.collectors.child.patches import applied
from traceview.rules.finding import RESULT, THE_END, Location
from traceview.trials import offered
from traceview.trials.edits import PATTERNS, edits
from traceview.trials.outside import compiled_too
from traceview.trials.source import Source

HEAD = "import functools\nimport torch\n"


def written(rule, text, line):
    """Texts of the file with each change that follows from a finding at the line that says so."""
    text = HEAD + dedent(text)
    number = next(n for n, each in enumerate(text.split("\n"), 1) if line in each)
    found = finding(rule)
    place = Location("/home/me/train.py", number)
    made = edits(
        type(found)(
            **{f: getattr(found, f) for f in found.__struct_fields__} | {"location": place}
        ),
        lambda file: text if file == place.file else None,
        "/home/me",
    )
    return [applied(text, each.patch + "\n").removeprefix(HEAD) for each in made]


CHANGED = {
    "distances that are sums": (
        "ind-extern-dominated",
        "cdist",
        """
        def crowd(probes, agents):
            near = torch.cdist(probes, agents[0].real, p=1.0)
            return torch.exp(-near)
        """,
        """
        def crowd(probes, agents):
            near = (probes.unsqueeze(-2) - agents[0].real.unsqueeze(-3)).abs().sum(-1)
            return torch.exp(-near)
        """,
    ),
    "a maximum whose backward needs a mask": (
        "ind-stored-masks",
        "amin",
        """
        def summarize(feats):
            high = feats.amax(dim=(1, 2))
            return high, torch.amin(feats, 1, keepdim=True)
        """,
        """
        def summarize(feats):
            high = feats.amax(dim=(1, 2))
            return high, torch.min(feats, 1, keepdim=True).values
        """,
    ),
    "a cumulative sum over elements that lie apart": (
        "ind-strided-scan",
        "cumsum",
        """
        def path(flow, opening):
            return opening + torch.cumsum(flow * 0.9, dim=0)
        """,
        """
        def path(flow, opening):
            return opening + (flow * 0.9).movedim(0, -1).contiguous().cumsum(dim=-1).movedim(-1, 0)
        """,
    ),
    "MKL for old CPUs": (
        "ap-debug-switch",
        "MKL_CBWR",
        """
        def seed_everything(seed):
            os.environ["MKL_CBWR"] = "COMPATIBLE"
            torch.manual_seed(seed)
        """,
        """
        def seed_everything(seed):
            torch.manual_seed(seed)
        """,
    ),
    "a Jacobian of many outputs": (
        "ind-reverse-jacobian",
        "vmap(jacrev",
        """
        import torch
        from torch.func import jacrev, vmap

        def slope(points):
            return vmap(jacrev(decoder))(points)
        """,
        """
        import torch
        from torch.func import jacrev, vmap

        def slope(points):
            return vmap(torch.func.jacfwd(decoder))(points)
        """,
    ),
    "a Jacobian by the module's own name": (
        "ind-reverse-jacobian",
        "jacrev",
        """
        def slope(points):
            return functorch.vmap(functorch.jacrev(decoder))(points)
        """,
        """
        def slope(points):
            return functorch.vmap(functorch.jacfwd(decoder))(points)
        """,
    ),
    "a matrix that is multiplied with a batch": (
        "ind-expanded-product",
        "matmul",
        """
        def hop(self, x):
            return torch.matmul(self.transition, x)
        """,
        """
        def hop(self, x):
            return torch.einsum("ij,...jk->...ik", self.transition, x)
        """,
    ),
    "weights of attention that nobody uses": (
        "ind-plain-attention",
        "self.attn(",
        """
        class Layer(nn.Module):
            def __init__(self):
                self.attn = nn.MultiheadAttention(64, 4)
                self.kept = nn.MultiheadAttention(64, 4)

            def forward(self, x):
                y, _ = self.attn(x, x, x)
                z, weights = self.kept(x, x, x)
                return self.attn(y, z, z, is_causal=True)[0], weights
        """,
        """
        class Layer(nn.Module):
            def __init__(self):
                self.attn = nn.MultiheadAttention(64, 4)
                self.kept = nn.MultiheadAttention(64, 4)

            def forward(self, x):
                y, _ = self.attn(x, x, x, need_weights=False)
                z, weights = self.kept(x, x, x)
                return self.attn(y, z, z, is_causal=True, need_weights=False)[0], weights
        """,
    ),
    "a condition that is read on the host": (
        "ap-launch-bound",
        "torch.cond",
        """
        def bay(air, outside):
            return torch.cond(air.mean() > 1, vent, burn, (air, outside))
        """,
        """
        def bay(air, outside):
            return torch.where(air.mean() > 1, vent(air, outside), burn(air, outside))
        """,
    ),
    "memory that each step gives back": (
        "mem-driver-calls",
        "empty_cache",
        """
        def tidy():
            gc.collect()
            torch.cuda.empty_cache()
        """,
        """
        def tidy():
            gc.collect()
        """,
    ),
    "weights that are others in each step": (
        "cg-moved-input",
        "param.data",
        """
        def install(net, genes):
            for param, gene in zip(net.parameters(), genes):
                param.data = gene * 2
        """,
        """
        def install(net, genes):
            for param, gene in zip(net.parameters(), genes):
                param.data.copy_(gene * 2)
        """,
    ),
    "sums that are read one by one": (
        "ap-host-sync",
        "hit[c]",
        """
        def update(self, pred, target):
            for c in range(150):
                same = target == c
                self.all[c] += same.sum().item()
                self.hit[c] += (same & (pred == c)).sum().item()
            self.last = pred.sum().item()
        """,
        """
        def update(self, pred, target):
            for c in range(150):
                same = target == c
                self.all[c] += same.sum()
                self.hit[c] += (same & (pred == c)).sum()
            self.last = pred.sum().item()
        """,
    ),
    "an optimizer for each weight": (
        "ap-not-in-model",
        "opts[p].step()",
        """
        opts = {p: torch.optim.AdamW([p], lr=3e-4, foreach=False) for p in net.parameters()}

        def on_grad(p):
            opts[p].step()
        """,
        """
        opts = {p: torch.optim.AdamW([p], lr=3e-4, fused=True) for p in net.parameters()}

        def on_grad(p):
            opts[p].step()
        """,
    ),
    "fewer digits on a CPU": (
        "ap-not-in-model",
        "net(x)",
        """
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = net(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            other(x)
        """,
        """
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            loss = net(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            other(x)
        """,
    ),
    "a number that is worked out of an argument": (
        "rc-python-constant",
        "round(",
        """
        @torch.compile
        def masked(day, share):
            visible = round(share, 3)
            return day * visible
        """,
        """
        def masked(day, share):
            return _masked_compiled(day, round(share, 3))


        @torch.compile
        def _masked_compiled(day, given):
            visible = given
            return day * visible
        """,
    ),
    "slices that a function gives out": (
        "ind-slice-gradients",
        "tuple(",
        """
        def forward(self, z):
            z = torch.tanh(z)
            return tuple(z[t] for t in range(z.shape[0]))
        """,
        """
        def forward(self, z):
            z = torch.tanh(z)
            z_parts = z.unbind(0)
            return tuple(z_parts[t] for t in range(z.shape[0]))
        """,
    ),
    "a tensor made of many arrays": (
        "ap-not-in-model",
        "torch.tensor(batch.obs)",
        """
        import numpy as np

        def sample(batch):
            obs = torch.tensor(batch.obs)
            return obs, torch.tensor(batch.done, dtype=torch.float32), torch.tensor([1.0])
        """,
        """
        import numpy as np

        def _tensor(values, **options):
            \"\"\"torch.tensor reads several arrays number by number, and one array at once.\"\"\"
            if isinstance(values, (list, tuple)) and values and isinstance(values[0], np.ndarray):
                values = np.stack(values)
            return torch.tensor(values, **options)


        def sample(batch):
            obs = _tensor(batch.obs)
            return obs, _tensor(batch.done, dtype=torch.float32), torch.tensor([1.0])
        """,
    ),
    "an argument that becomes float32": (
        "ind-scalar-loop",
        "counts.to",
        """
        @torch.compile
        def volts(counts, scale):
            v = counts.to(torch.float32) * scale
            return v.abs()
        """,
        """
        @torch.compiler.disable
        def _as_float32(x):
            return x.float()


        @torch.compile
        def volts(counts, scale):
            v = _as_float32(counts) * scale
            return v.abs()
        """,
    ),
    "additions by index": (
        "ind-slower-library",
        "index_add_",
        """
        def forces(self, total, q):
            f.index_add_(0, i, -q)
            return total
        """,
        """
        def forces(self, total, q):
            f.scatter_add_(0, i.view(-1, *[1] * (f.dim() - 1)).expand(-1, *f.shape[1:]), -q)
            return total
        """,
    ),
    "slices of a tensor that a loop reads one by one": (
        "ind-slice-gradients",
        "v = leak",
        """
        def forward(self, current):
            v = torch.zeros_like(current[:, 0])
            for t in range(current.shape[1]):
                v = leak[t] * v + current[:, t]
                if t > 0:
                    v = v - current[:, t] * current[:, t - 1]
            return v
        """,
        """
        def forward(self, current):
            v = torch.zeros_like(current[:, 0])
            current_parts = current.unbind(1)
            for t in range(current.shape[1]):
                v = leak[t] * v + current_parts[t]
                if t > 0:
                    v = v - current_parts[t] * current[:, t - 1]
            return v
        """,
    ),
    "slices of an attribute, along a dimension in the middle": (
        "ind-slice-gradients",
        "self.drive",
        """
        for t in range(4):
            v = 0.9 * v + self.drive[:, t, :]
        """,
        """
        self_drive_parts = self.drive.unbind(1)
        for t in range(4):
            v = 0.9 * v + self_drive_parts[t]
        """,
    ),
    "slices along the last dimension": (
        "ind-slice-gradients",
        "drive",
        """
        if True:
            for t in range(3, -1, -1):
                v = v + (
                    drive[..., t]
                )
        """,
        """
        if True:
            drive_parts = drive.unbind(-1)
            for t in range(3, -1, -1):
                v = v + (
                    drive_parts[t]
                )
        """,
    ),
    "slices along the first dimension": (
        "ind-slice-gradients",
        "drive[t]",
        """
        for t in range(4):
            v = v + drive[t]
        """,
        """
        drive_parts = drive.unbind(0)
        for t in range(4):
            v = v + drive_parts[t]
        """,
    ),
    "an optimizer with lists of tensors": (
        "ap-not-in-model",
        "opt.step()",
        """
        opt = torch.optim.Adafactor(
            net.parameters(),
            lr=1e-3,
        )
        opt.step()
        """,
        """
        opt = torch.optim.Adafactor(
            net.parameters(),
            lr=1e-3, foreach=True,
        )
        opt.step()
        """,
    ),
    "two views of one tensor that are written": (
        "ind-partial-write",
        "index_copy_",
        """
        def serve():
            ring = torch.zeros(8, 64, 2, 16)
            keys, values = ring.unbind(2)
            return Rings(keys, values)

        def keep(keys, slot, k):
            keys.index_copy_(1, slot, k)
        """,
        """
        def serve():
            ring = torch.zeros(8, 64, 2, 16)
            keys, values = (part.clone() for part in ring.unbind(2))
            return Rings(keys, values)

        def keep(keys, slot, k):
            keys.index_copy_(1, slot, k)
        """,
    ),
    "the place of a minimum": (
        "ind-few-programs",
        "argmin",
        """
        @torch.compile
        def fix(misfit):
            return torch.argmin(misfit.reshape(-1))
        """,
        """
        _eager_argmin = torch.compiler.disable(torch.argmin)


        @torch.compile
        def fix(misfit):
            return _eager_argmin(misfit.reshape(-1))
        """,
    ),
    "an optimizer whose kernels are many": (
        "ap-not-in-model",
        "opt.step()",
        """
        opt = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
        other = torch.optim.NAdam(head.parameters())
        for x in batches:
            net(x).sum().backward()
            opt.step()
        """,
        """
        opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
        other = torch.optim.NAdam(head.parameters())
        for x in batches:
            net(x).sum().backward()
            opt.step()
        """,
    ),
    "a param group for each parameter": (
        "ap-not-in-model",
        "self.opt.step()",
        """
        class Trainer:
            def __init__(self, net):
                self.opt = torch.optim.NAdam([{"params": [p]} for p in net.parameters()])

            def update(self):
                self.opt.step()
        """,
        """
        def _merged(groups):
            \"\"\"Param groups with the same options are one.\"\"\"
            found, groups = {}, list(groups)
            if not isinstance(groups[0], dict):
                return groups
            for group in groups:
                options = {k: v for k, v in group.items() if k not in ("params", "name")}
                one = found.setdefault(repr(sorted(options.items())), {**options, "params": []})
                params = group["params"]
                one["params"] += [params] if hasattr(params, "grad") else list(params)
            return list(found.values())


        class Trainer:
            def __init__(self, net):
                self.opt = torch.optim.NAdam(_merged([{"params": [p]} for p in net.parameters()]))

            def update(self):
                self.opt.step()
        """,
    ),
    "a loader without workers": (
        "ap-not-in-model",
        "in loader",
        """
        loader = DataLoader(tiles, batch_size=16)
        for tile in loader:
            net(tile)
        """,
        """
        loader = DataLoader(tiles, batch_size=16, num_workers=4, persistent_workers=True)
        for tile in loader:
            net(tile)
        """,
    ),
    "a mask that each step makes": (
        "ap-not-in-model",
        "mask = create",
        """
        def local(b, h, q, kv):
            return q - kv < WINDOW

        for x in batches:
            mask = create_block_mask(local, None, None, 512, 512)
            net(x, mask)
        """,
        """
        def local(b, h, q, kv):
            return q - kv < WINDOW

        mask = create_block_mask(local, None, None, 512, 512)
        for x in batches:
            net(x, mask)
        """,
    ),
    "a mask that a function makes for each step": (
        "ap-not-in-model",
        "net(x",
        """
        def masked(doc):
            def same(b, h, q, kv):
                return doc[q] == doc[kv]

            return create_block_mask(same, None, None, 512, 512)

        for x in batches:
            net(x, masked(doc))
        """,
        """
        def masked(doc):
            def same(b, h, q, kv):
                return doc[q] == doc[kv]

            return create_block_mask(same, None, None, 512, 512)

        block_mask = masked(doc)
        for x in batches:
            net(x, block_mask)
        """,
    ),
    "a buffer that numpy made in float64": (
        "ap-promoted-float64",
        "return x",
        """
        class Plate(torch.nn.Module):
            def __init__(self, table):
                super().__init__()
                self.register_buffer("rate", torch.from_numpy(table))
                self.other = torch.from_numpy(table)

            def forward(self, x):
                return x * self.rate
        """,
        """
        class Plate(torch.nn.Module):
            def __init__(self, table):
                super().__init__()
                self.register_buffer("rate", torch.from_numpy(table).float())
                self.other = torch.from_numpy(table)

            def forward(self, x):
                return x * self.rate
        """,
    ),
    "a name of the module that numpy made in float64": (
        "ap-promoted-float64",
        "return x",
        """
        TABLE = torch.as_tensor(np.linspace(0, 1, 8))

        def scaled(x):
            return x * TABLE
        """,
        """
        TABLE = torch.as_tensor(np.linspace(0, 1, 8)).float()

        def scaled(x):
            return x * TABLE
        """,
    ),
    "an operator that writes into arguments and does not say so": (
        "acc-dropped-operator",
        "push(self.history, x)",
        """
        @torch.library.custom_op("echo::push", mutates_args=())
        def push(history: torch.Tensor, sums: torch.Tensor, x: torch.Tensor, n: int) -> None:
            n += 1
            x = x.clamp(0, n)
            sums.mul_(2).add_(x)
            history[:, 0] = x

        def forward(self, x):
            push(self.history, x)
        """,
        """
        @torch.library.custom_op("echo::push", mutates_args=("history", "sums"))
        def push(history: torch.Tensor, sums: torch.Tensor, x: torch.Tensor, n: int) -> None:
            n += 1
            x = x.clamp(0, n)
            sums.mul_(2).add_(x)
            history[:, 0] = x

        def forward(self, x):
            push(self.history, x)
        """,
    ),
    "a gradient that is differentiated again": (
        "cap-fails-compiled",
        "loss.backward()",
        """
        def penalty(critic, a, b):
            between = (a + b).requires_grad_(True)
            score = critic(between)
            slope, = torch.autograd.grad(score.sum(), between, create_graph=True)
            return slope.norm()

        loss.backward()
        """,
        """
        def penalty(critic, a, b):
            between = (a + b).requires_grad_(True)
            with torch.compiler.set_stance("force_eager"):
                score = critic(between)
            slope, = torch.autograd.grad(score.sum(), between, create_graph=True)
            return slope.norm()

        loss.backward()
        """,
    ),
    "the call in the gradient's own line, and a name in between": (
        "cap-fails-compiled",
        "loss.backward()",
        """
        def penalty(critic, a):
            total = critic(a)
            score = total.sum()
            g, = grad(score, a, create_graph=True)
            return g

        def other(critic, a):
            g, = grad(critic(a).sum(), a)
            return g

        loss.backward()
        """,
        """
        def penalty(critic, a):
            with torch.compiler.set_stance("force_eager"):
                total = critic(a)
            score = total.sum()
            g, = grad(score, a, create_graph=True)
            return g

        def other(critic, a):
            g, = grad(critic(a).sum(), a)
            return g

        loss.backward()
        """,
    ),
    "what a method works out again in each call": (
        "gd-guard-overhead",
        "return sum",
        """
        class Economy(torch.nn.Module):
            def __init__(self, goods):
                super().__init__()
                self.base = {good: 1.0 for good in goods}

            def level(self):
                return sum(self.base.values()) / len(self.base)
        """,
        """
        class Economy(torch.nn.Module):
            def __init__(self, goods):
                super().__init__()
                self.base = {good: 1.0 for good in goods}
                self._level_of_base = sum(self.base.values()) / len(self.base)

            def level(self):
                return self._level_of_base
        """,
    ),
    "what was assumed to be constant": (
        "acc-unlike-eager",
        "return SCALE",
        """
        @torch.compiler.assume_constant_result
        def scale():
            return SCALE[0]
        """,
        """
        def scale():
            return SCALE[0]
        """,
    ),
    "a compiled function that another one calls twice": (
        "ap-call-overhead",
        "return -k * x",
        """
        @torch.compile
        def pull(x, k):
            return -k * x

        def step(x, k):
            half = x + 0.5 * pull(x, k)
            return x + pull(half, k)
        """,
        """
        def pull(x, k):
            return -k * x

        @torch.compile
        def step(x, k):
            half = x + 0.5 * pull(x, k)
            return x + pull(half, k)
        """,
    ),
    "a compiled function that another one calls in a loop": (
        "ap-call-overhead",
        "@torch.compile",
        """
        @torch.compile(dynamic=False)
        def update(a, result):
            return a + result, a - result

        def play(ratings, results):
            for g in range(60):
                ratings[g], _ = update(ratings[g], results[g])
            return ratings
        """,
        """
        def update(a, result):
            return a + result, a - result

        @torch.compile(dynamic=False)
        def play(ratings, results):
            for g in range(60):
                ratings[g], _ = update(ratings[g], results[g])
            return ratings
        """,
    ),
    "a copy of a compiled module": (
        "cap-copy-in-eager",
        "deepcopy",
        """
        pattern = re.compile("a")
        def league(pupil):
            pupil.compile(mode="default")
            past = copy.deepcopy(pupil).eval()
            return past
        """,
        """
        pattern = re.compile("a")
        def league(pupil):
            pupil.compile(mode="default")
            past = copy.deepcopy(pupil).eval()
            past.compile(mode="default")
            return past
        """,
    ),
    "branches that set one name": (
        "gb-data-dependent",
        "if h.mean()",
        """
        def forward(h):
            if h.mean() > 0:  # towards the middle
                h = damp(h)
            else:
                h = amplify(h)
            return h
        """,
        """
        def forward(h):
            h = torch.where(h.mean() > 0, damp(h), amplify(h))
            return h
        """,
    ),
    "a branch that may change names": (
        "gb-data-dependent",
        "if size",
        """
        def forward(size, a, b):
            if size > 1.0:
                a = a / size
                b -= 1 - size
            return a, b
        """,
        """
        def forward(size, a, b):
            taken = size > 1.0
            a = torch.where(taken, a / size, a)
            b = torch.where(taken, b - (1 - size), b)
            return a, b
        """,
    ),
    "a test that ends a loop": (
        "gb-frame-skipped",
        "if step",
        """
        def solve(x):
            for _ in range(9):
                step = f(x)
                x = x - step
                if step.abs().max() < 1e-5:
                    break
            return x
        """,
        """
        def solve(x):
            for _ in range(9):
                step = f(x)
                x = x - step
            return x
        """,
    ),
    "messages": (
        "gb-side-effect-io",
        "enter",
        """
        def forward(x):
            log.debug("enter %s", x.shape)
            x = x + 1
            print("done")
            return x
        """,
        """
        def forward(x):
            if not torch.compiler.is_compiling():
                log.debug("enter %s", x.shape)
            x = x + 1
            if not torch.compiler.is_compiling():
                print("done")
            return x
        """,
    ),
    "a function that is disabled": (
        "gb-disabled-hot",
        "attend(x))",
        """
        @torch.compiler.disable(recursive=True)
        @other
        def attend(x):
            return x

        def forward(x):
            return torch.tanh(attend(x))
        """,
        """
        @other
        def attend(x):
            return x

        def forward(x):
            return torch.tanh(attend(x))
        """,
    ),
    "a whole step": (
        "gb-optimizer-or-backward",
        "loss.backward",
        """
        @torch.compile(dynamic=False)
        def step(x, y):
            optimizer.zero_grad()
            guess = model(x)
            loss = mse(guess, y)
            loss.backward()
            optimizer.step()
            return loss, guess
        """,
        """
        @torch.compile(dynamic=False)
        def _step_compiled(x, y):
            guess = model(x)
            loss = mse(guess, y)
            return guess, loss


        def step(x, y):
            optimizer.zero_grad()
            guess, loss = _step_compiled(x, y)
            loss.backward()
            optimizer.step()
            return loss, guess
        """,
    ),
    "an index that is a tensor": (
        "gb-frame-skipped",
        "alpha[t]",
        """
        def update(self, x, t):
            return x * self.alpha[t]
        """,
        """
        def update(self, x, t):
            return x * self.alpha.index_select(0, t.reshape(1)).squeeze(0)
        """,
    ),
    "a value that is looked up": (
        "rc-python-constant",
        "UNITS[unit]",
        """
        UNITS = {"m": 1.0}

        @torch.compile
        def metres(values, unit):
            \"\"\"In metres.\"\"\"
            x = values * UNITS[unit]
            return x + UNITS[unit]
        """,
        """
        UNITS = {"m": 1.0}

        def metres(values, unit):
            return _metres_compiled(values, UNITS[unit])


        @torch.compile
        def _metres_compiled(values, given):
            \"\"\"In metres.\"\"\"
            x = values * given
            return x + given
        """,
    ),
    "a dictionary that grows, of which one key matters": (
        "rc-container-length",
        "if name in ages",
        """
        @torch.compile
        def place(x, ages, name):
            y = x.exp()
            if name in ages:
                y = y + 1
            return y
        """,
        """
        def place(x, ages, name):
            return _place_compiled(x, name in ages)


        @torch.compile
        def _place_compiled(x, given):
            y = x.exp()
            if given:
                y = y + 1
            return y
        """,
    ),
    "a call that breaks a module's graph": (
        "gb-unsupported-call",
        "zlib.crc32",
        """
        def phase(name):
            return zlib.crc32(name) / 9

        class Net(torch.nn.Module):
            def forward(self, x, name):
                return x + phase(name)

        net = torch.compile(Net(), dynamic=True)
        """,
        """
        def phase(name):
            return zlib.crc32(name) / 9

        class Net(torch.nn.Module):
            @torch.compiler.disable
            def forward(self, x, name):
                return self._forward_compiled(x, phase(name))

            @torch.compile(dynamic=True)
            def _forward_compiled(self, x, given):
                return x + given

        net = torch.compile(Net(), dynamic=True)
        """,
    ),
    "a class for each call": (
        "rc-object-identity",
        "step(x, make(0.5))",
        """
        def make(scale):
            class Scale:
                by = scale

            return Scale()

        step(x, make(0.5))
        """,
        """
        @functools.cache
        def make(scale):
            class Scale:
                by = scale

            return Scale()

        step(x, make(0.5))
        """,
    ),
    "a list of the object that grows": (
        "rc-container-length",
        "alive.append",
        """
        class Life:
            def step(self, x):
                self.alive.append(x.mean())
                return x
        """,
        """
        @torch.compiler.disable
        def _append_alive(owner, value):
            owner.alive.append(value)


        class Life:
            def step(self, x):
                _append_alive(self, x.mean())
                return x
        """,
    ),
    "a learning rate": (
        "rc-python-constant",
        "update()",
        """
        optimizer = torch.optim.SGD(weights, lr=0.02, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
        update = torch.compile(optimizer.step)
        update()
        """,
        """
        optimizer = torch.optim.SGD(weights, lr=torch.tensor(0.02), momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
        update = torch.compile(optimizer.step)
        update()
        """,
    ),
    "an operator without a fake": (
        "cap-customop-no-fake",
        "def rank",
        """
        @torch.library.custom_op("tools::rank", mutates_args=())
        def rank(x: torch.Tensor) -> torch.Tensor:
            return x.argsort().to(x.dtype)
        """,
        """
        @torch.library.custom_op("tools::rank", mutates_args=())
        def rank(x: torch.Tensor) -> torch.Tensor:
            return x.argsort().to(x.dtype)


        @rank.register_fake
        def _(x):
            return torch.empty_like(x)
        """,
    ),
    "a slow kernel of one function of torch": (
        "ind-slower-fusion",
        "grid_sample",
        """
        import torch.nn.functional as F

        def forward(x, grid):
            return F.grid_sample(x, grid)
        """,
        """
        import torch.nn.functional as F

        _eager_grid_sample = torch.compiler.disable(F.grid_sample)


        def forward(x, grid):
            return _eager_grid_sample(x, grid)
        """,
    ),
    "a pooling of what is computed for each of its windows": (
        "ind-recomputed",
        "max_pool2d",
        """
        import torch.nn.functional as F

        def forward(x):
            return F.max_pool2d(F.gelu(x), 5)
        """,
        """
        import torch.nn.functional as F

        _eager_max_pool2d = torch.compiler.disable(F.max_pool2d)


        def forward(x):
            return _eager_max_pool2d(F.gelu(x), 5)
        """,
    ),
    "sums over a mask": (
        "gb-dynamic-output-shape",
        "smooth[",
        """
        def measure(depth):
            smooth = torch.tanh(depth)
            valid = smooth[depth > 0.2]
            weight = torch.exp(-valid.square()) * 2 + valid.sigmoid()
            total = (weight * valid).sum()
            return total / weight.sum()
        """,
        """
        def measure(depth):
            smooth = torch.tanh(depth)
            valid = smooth
            weight = torch.exp(-valid.square()) * 2 + valid.sigmoid()
            total = (torch.where(depth > 0.2, weight * valid, 0)).sum()
            return total / torch.where(depth > 0.2, weight, 0).sum()
        """,
    ),
    "a mean over a mask": (
        "gb-dynamic-output-shape",
        "mean",
        """
        def loss(x, y, mask):
            return (x - y).square()[mask].mean() + 1
        """,
        """
        def loss(x, y, mask):
            return (torch.where(mask, (x - y).square(), 0).sum() / (mask).sum()) + 1
        """,
    ),
    "a function without vector code": (
        "ind-scalar-loop",
        "erfinv",
        """
        import torch

        def scores(u):
            return 1.4 * torch.erfinv(2.0 * u - 1.0)
        """,
        """
        import torch

        _eager_erfinv = torch.compiler.disable(torch.erfinv)


        def scores(u):
            return 1.4 * _eager_erfinv(2.0 * u - 1.0)
        """,
    ),
    "a changed copy": (
        "ind-whole-copy",
        "index_copy(",
        """
        def step(table, at, rows):
            table = table.index_copy(0, at, rows)
            return table
        """,
        """
        def step(table, at, rows):
            table = table.index_copy_(0, at, rows)
            return table
        """,
    ),
    "compiled in each step": (
        "ct-compile-in-step",
        "torch.compile(",
        """
        import torch

        def rule(p, g, lr):
            p.sub_(lr * g)

        def step(params, lr):
            for p in params:
                torch.compile(rule, dynamic=False)(p, p.grad, lr)
        """,
        """
        import torch

        def rule(p, g, lr):
            p.sub_(lr * g)


        compiled_rule = torch.compile(rule, dynamic=False)

        def step(params, lr):
            for p in params:
                compiled_rule(p, p.grad, lr)
        """,
    ),
    "compiled in each step, one of several functions": (
        "ct-compile-in-step",
        "torch.compile(",
        """
        import torch

        TERMS = {"sin": torch.sin, "cos": torch.cos}

        def total(x):
            for name in TERMS:
                term = torch.compile(TERMS[name])
                x = x + term(x)
            return x
        """,
        """
        import torch

        TERMS = {"sin": torch.sin, "cos": torch.cos}

        import functools

        compile_once = functools.cache(torch.compile)


        def total(x):
            for name in TERMS:
                term = compile_once(TERMS[name])
                x = x + term(x)
            return x
        """,
    ),
    "weights that nothing trains": (
        "ind-untrained-weights",
        "wanted =",
        """
        class Loss(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net

            def forward(self, x, y):
                wanted = self.net(y)
                return (x - wanted).square().mean()
        """,
        """
        class Loss(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.net.requires_grad_(False)

            def forward(self, x, y):
                wanted = self.net(y)
                return (x - wanted).square().mean()
        """,
    ),
    "a causal mask": (
        "ind-causal-mask",
        "attention(",
        """
        import torch.nn.functional as F

        def mix(q, k, v, allowed):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=0.1)
        """,
        """
        import torch.nn.functional as F

        def mix(q, k, v, allowed):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.1)
        """,
    ),
    "a causal mask by its place": (
        "ind-causal-mask",
        "attention(",
        """
        from torch.nn.functional import scaled_dot_product_attention

        def mix(q, k, v, allowed):
            return scaled_dot_product_attention(q, k, v, allowed)
        """,
        """
        from torch.nn.functional import scaled_dot_product_attention

        def mix(q, k, v, allowed):
            return scaled_dot_product_attention(q, k, v, is_causal=True)
        """,
    ),
    "attention in float32 of values that are cast": (
        "ind-wide-attention",
        "attention(",
        """
        import torch.nn.functional as F

        def mix(q, k, v, s):
            return F.scaled_dot_product_attention(q, k * s, v.to(q.dtype), scale=0.1)
        """,
        """
        import torch.nn.functional as F

        def mix(q, k, v, s):
            return F.scaled_dot_product_attention(q.to(v.dtype), (k * s).to(v.dtype), v, scale=0.1)
        """,
    ),
    "attention in float32 on several lines": (
        "ind-wide-attention",
        "attention(",
        """
        def mix(self, q, k):
            return torch.nn.functional.scaled_dot_product_attention(
                self.norm(q),
                self.norm(k),
                self.v.float(),
            )
        """,
        """
        def mix(self, q, k):
            return torch.nn.functional.scaled_dot_product_attention(
                self.norm(q).to(self.v.dtype),
                self.norm(k).to(self.v.dtype),
                self.v,
            )
        """,
    ),
    "attention in float32 by its name": (
        "ind-wide-attention",
        "attention(",
        """
        def mix(q, k, v):
            return F.scaled_dot_product_attention(q, k, v.to(torch.float32))
        """,
        """
        def mix(q, k, v):
            return F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v)
        """,
    ),
    "a variable that switches compiling off": (
        "cap-nothing-compiled",
        "compiled =",
        """
        import os
        os.environ["TORCH_COMPILE_DISABLE"] = os.environ.get("SAFE", "1")
        compiled = torch.compile(f)
        """,
        """
        import os
        os.environ["TORCH_COMPILE_DISABLE"] = "0"
        compiled = torch.compile(f)
        """,
    ),
    "a stance that stays": (
        "cap-nothing-compiled",
        "compiled =",
        """
        compiled = torch.compile(f)

        def plain():
            torch.compiler.set_stance("force_eager")
            yield compiled
        """,
        """
        compiled = torch.compile(f)

        def plain():
            with torch.compiler.set_stance("force_eager"):
                yield compiled
        """,
    ),
    "a generator": (
        "cap-nothing-compiled",
        "torch.compile",
        """
        @torch.compile
        def windows(x, size, times=3):
            for start in range(0, 99, size):
                piece = x[start : start + size]
                for _ in range(times):
                    piece = piece.sin()
                yield piece * 2
        """,
        """
        @torch.compile
        def _windows_compiled(times, piece):
            for _ in range(times):
                piece = piece.sin()
            return piece * 2


        def windows(x, size, times=3):
            for start in range(0, 99, size):
                piece = x[start : start + size]
                yield _windows_compiled(times, piece)
        """,
    ),
    "a generator that goes on with what it has worked out": (
        "cap-nothing-compiled",
        "torch.compile",
        """
        @torch.compile
        def frames(angle, speed, count):
            for _ in range(count):
                speed = speed + torch.sin(angle)
                turned = angle + speed
                angle = turned
                yield turned * 2
        """,
        """
        @torch.compile
        def _frames_compiled(angle, speed):
            speed = speed + torch.sin(angle)
            turned = angle + speed
            angle = turned
            return angle, speed, turned


        def frames(angle, speed, count):
            for _ in range(count):
                angle, speed, turned = _frames_compiled(angle, speed)
                yield turned * 2
        """,
    ),
    "a mode around the steps": (
        "cap-nothing-compiled",
        "net =",
        """
        net = torch.compile(f)
        with FlopCounterMode():
            for x in batches:
                net(x)
        """,
        """
        net = torch.compile(f)
        for x in batches:
            net(x)
        """,
    ),
    "a mode among others": (
        "cap-nothing-compiled",
        "net =",
        """
        net = torch.compile(f)
        meter = FlopCounterMode(display=False)
        with torch.no_grad(), meter:
            for x in batches:
                net(x)
        print(meter.get_total_flops())
        """,
        """
        net = torch.compile(f)
        meter = FlopCounterMode(display=False)
        with torch.no_grad():
            for x in batches:
                net(x)
        print(meter.get_total_flops())
        """,
    ),
    "a mode before others": (
        "cap-nothing-compiled",
        "net =",
        """
        net = torch.compile(f)
        with FlopCounterMode(), open(path) as file:
            net(file)
        """,
        """
        net = torch.compile(f)
        with open(path) as file:
            net(file)
        """,
    ),
    "a generator that yields now and then": (
        "cap-nothing-compiled",
        "torch.compile",
        """
        @torch.compile
        def frames(angle, count):
            for i in range(count):
                speed = torch.sin(angle)
                angle = angle + speed
                if i % 9 == 0:
                    yield angle, speed
        """,
        """
        @torch.compile
        def _frames_compiled(angle):
            speed = torch.sin(angle)
            angle = angle + speed
            return angle, speed


        def frames(angle, count):
            for i in range(count):
                angle, speed = _frames_compiled(angle)
                if i % 9 == 0:
                    yield angle, speed
        """,
    ),
    "a generator that goes through values": (
        "cap-nothing-compiled",
        "torch.compile",
        """
        @torch.compile
        def fire(heat, programme):
            for target in programme:
                for _ in range(4):
                    heat = heat + 0.5 * (target - heat)
                yield heat
        """,
        """
        @torch.compile
        def _fire_compiled(heat, target):
            for _ in range(4):
                heat = heat + 0.5 * (target - heat)
            return heat


        def fire(heat, programme):
            for target in programme:
                heat = _fire_compiled(heat, target)
                yield heat
        """,
    ),
    "transforms of a compiled function": (
        "gb-frame-skipped",
        "fit =",
        """
        @torch.compile(mode="default")
        def residual(x):
            return x.sin().sum()

        fit = torch.vmap(torch.func.grad(residual), in_dims=(0,))
        """,
        """
        def residual(x):
            return x.sin().sum()

        fit = torch.compile(torch.vmap(torch.func.grad(residual), in_dims=(0,)), mode="default")
        """,
    ),
    "a transform of what torch.compile gave": (
        "cap-nothing-captured",
        "single =",
        """
        from torch.func import grad_and_value
        single = torch.compile(energy)
        forces = grad_and_value(single)
        """,
        """
        from torch.func import grad_and_value
        single = energy
        forces = torch.compile(grad_and_value(single))
        """,
    ),
    "TorchScript": (
        "cap-nothing-compiled",
        "net =",
        """
        net = torch.compile(torch.jit.freeze(torch.jit.script(Net().eval())))

        @torch.jit.script
        def gate(x):
            return x * x.sigmoid()
        """,
        """
        net = torch.compile(Net().eval())

        def gate(x):
            return x * x.sigmoid()
        """,
    ),
    "a forward that is called": (
        "cap-nothing-compiled",
        "net.compile",
        """
        net.compile()
        for x in batches:
            y = net.forward(x)
        """,
        """
        net.compile()
        for x in batches:
            y = net(x)
        """,
    ),
    "a first call that is counted": (
        "cap-nothing-compiled",
        "with FlopCounterMode",
        """
        with torch.no_grad():
            with FlopCounterMode(display=False) as meter:
                model(batches[0])
            flops = meter.get_total_flops()
        """,
        """
        with torch.no_grad():
            with torch.compiler.set_stance("force_eager"), FlopCounterMode(display=False) as meter:
                model(batches[0])
            flops = meter.get_total_flops()
        """,
    ),
    "a forward that is called by a method": (
        "cap-nothing-compiled",
        "net.compile",
        """
        class Net(nn.Module):
            def forward(self, x):
                return x.exp()

            def encode(self, text):
                return self.forward(tokens(text))

        net.compile()
        """,
        """
        class Net(nn.Module):
            def forward(self, x):
                return x.exp()

            def encode(self, text):
                return self(tokens(text))

        net.compile()
        """,
    ),
    "a slice that is not aligned": (
        "ind-misaligned-copy",
        "ratio = step",
        """
        for start in range(9):
            window = record[:, start : start + 9]
            ratio = step(window, taper)
        """,
        """
        for start in range(9):
            window = record[:, start : start + 9].clone()
            ratio = step(window, taper)
        """,
    ),
    "a module with a call of its own": (
        "cap-nothing-compiled",
        "net.compile",
        """
        class Net(torch.nn.Module):
            def __call__(self, pair):
                return self.forward(pair.x)

        net = Net()
        net.compile(dynamic=False)
        """,
        """
        class Net(torch.nn.Module):
            def __call__(self, pair):
                return self.forward(pair.x)

        net = Net()
        net.forward = torch.compile(net.forward, dynamic=False)
        """,
    ),
    "a reset": (
        "ct-repeated-same-compile",
        "reset",
        """
        def between():
            gc.collect()
            torch._dynamo.reset()
        """,
        """
        def between():
            gc.collect()
        """,
    ),
    "a reset alone": (
        "ct-repeated-same-compile",
        "reset",
        """
        def between():
            torch.compiler.reset()
        """,
        """
        def between():
            pass
        """,
    ),
    "a lookup in a function that is compiled elsewhere": (
        "rc-python-constant",
        "KINDS[kind]",
        """
        KINDS = {"sin": torch.sin}

        def mix(x, kind):
            return KINDS[kind](x) + x

        mixed = torch.compile(mix, dynamic=False)
        """,
        """
        KINDS = {"sin": torch.sin}

        def mix(x, kind):
            return _mix_compiled(x, KINDS[kind](x))


        @torch.compile(dynamic=False)
        def _mix_compiled(x, given):
            return given + x

        mixed = mix
        """,
    ),
    "workers that start for every epoch": (
        "ap-not-in-model",
        "num_workers=2",
        """
        loader = data.DataLoader(
            rows, batch_size=8, num_workers=2,
        )
        other = data.DataLoader(rows, num_workers=4)
        """,
        """
        loader = data.DataLoader(
            rows, batch_size=8, num_workers=2, persistent_workers=True,
        )
        other = data.DataLoader(rows, num_workers=4)
        """,
    ),
    "a function with a cache": (
        "cap-cached-function",
        "kernel(9)",
        """
        from functools import lru_cache

        @lru_cache(maxsize=8)
        def kernel(size):
            return torch.ones(size)

        def smooth(x):
            return x @ kernel(9)
        """,
        """
        from functools import lru_cache

        @torch.compiler.disable
        @lru_cache(maxsize=8)
        def kernel(size):
            return torch.ones(size)

        def smooth(x):
            return x @ kernel(9)
        """,
    ),
    "a view of a state that changes": (
        "ap-not-in-model",
        "for i in",
        """
        class Maze:
            def __init__(self, size):
                self.size, self.at = size, 0

            def view(self):
                row = []
                for i in range(self.size):
                    row.append(abs(i - self.at))
                return torch.tensor(row)

            def move(self, by):
                self.at += by
        """,
        """
        class Maze:
            def __init__(self, size):
                self.size, self.at = size, 0

            def view(self):
                return self._view_of(self.at)

            @functools.lru_cache(maxsize=None)
            def _view_of(self, at):
                row = []
                for i in range(self.size):
                    row.append(abs(i - at))
                return torch.tensor(row)

            def move(self, by):
                self.at += by
        """,
    ),
    "text that is decoded": (
        "ap-not-in-model",
        "json.loads",
        """
        import json

        def rows(lines):
            for line in lines:
                row = json.loads(line)
                yield [row[key] for key in sorted(row)]
        """,
        """
        import json

        _loads = functools.cache(json.loads)


        def rows(lines):
            for line in lines:
                row = _loads(line)
                yield [row[key] for key in sorted(row)]
        """,
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_pattern_is_changed_and_nothing_else(case):
    rule, line, before, after = CHANGED[case]
    made, *others = written(rule, before, line)
    assert made == dedent(after)
    assert others == []
    ast.parse(made)


def test_a_module_whose_other_method_is_called_has_two_ways():
    text = """
    class Net(torch.nn.Module):
        def forward(self, x):
            return x

        def generate(self, x):
            return self.forward(x)

    net = torch.compile(Net(), dynamic=True)
    net.generate(1)
    """
    first, second = written("cap-nothing-compiled", text, "net = torch")
    assert "net = Net()\nnet.generate = torch.compile(net.generate, dynamic=True)\n" in first
    assert "net = Net()\nnet.forward = torch.compile(net.forward, dynamic=True)\n" in second


def test_a_mode_for_each_step_counts_the_first_one_only():
    text = """
    for x in batches:
        with FlopCounterMode(display=False) as counter:
            net(x)
        flops += counter.get_total_flops()
    """
    (made,) = written("cap-nothing-compiled", text, "net(x)")
    assert made.startswith("import contextlib\n")
    assert "self._entered.enter_context(FlopCounterMode(display=False))\n" in made
    assert "    with _CountedOnce() as counter:\n        net(x)\n" in made
    once = text.replace("    for x in batches:\n    ", "    if True:\n    ")
    assert written("cap-nothing-compiled", once, "net(x)") == []


def test_keys_of_a_compiled_module_are_found_on_either_side():
    text = "target.load_state_dict(net.state_dict(), strict=False)\n"
    given, own = written("acc-lost-weights", text, "target")
    assert given == (
        'target.load_state_dict({key.replace("_orig_mod.", ""): value for key, value in'
        " net.state_dict().items()}, strict=False)\n"
    )
    assert own.startswith('getattr(target, "_orig_mod", target).load_state_dict(net.state_dict()')


def test_what_is_wrong_says_what_its_remedy_fixes_and_comes_first():
    wrong = replace(finding("acc-hook-ignored", "a=1"), cost=RESULT, severity="error")
    bug = replace(finding("acc-backend-bug", "backend=eager"), cost=RESULT, severity="error")
    fails = replace(finding("cap-fails-compiled", "b=1"), cost=THE_END)
    slow = finding("rc-limit-hit", "c=1", ms=50.0)
    cause = replace(wrong, symptoms=(slow,))
    found, _ = offered([slow, cause, fails, bug], "/home/me")
    assert {one.name: (one.fixes, one.afresh) for one in found} == {
        "a=1": ("results", False),
        "b=1": ("failure", False),
        "backend=eager": ("results", True),
        "c=1": (None, False),
    }
    assert found[-1].name == "c=1"
    info = replace(wrong, severity="info")
    assert [one.fixes for one in offered([info], "/home/me")[0]] == [None]


COMPLEX = """
def phase(x):
    return torch.exp(-1j * x)


def turn(z, x):
    return z * phase(x), z.real


turned = torch.compile(turn, dynamic=False)
"""


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_complex_numbers_are_computed_in_parts_with_the_same_results(monkeypatch):
    (made,) = written("ind-extern-dominated", COMPLEX, "return z")
    assert "\n@_in_parts\ndef turn(z, x):\n" in made
    assert "torch.exp(-_imaginary(1.0) * x)" in made
    names = {}
    exec(compile(HEAD + made, "train.py", "exec"), names)
    z, x = torch.randn(4, 3, dtype=torch.complex64).T.conj(), torch.randn(3, 4)
    expected = names["turn"](z, x)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for own, plain in zip(names["turn"](z, x), expected, strict=True):
        torch.testing.assert_close(own, plain)


def test_sums_into_a_few_places_are_made_in_many():
    text = """
    def fold(at, power):
        return torch.zeros(BINS + 1, device="cuda").scatter_add(0, at + 1, power) / 2
    """
    (made,) = written("ind-slow-kernel", text, "scatter_add")
    where = "(at + 1) * 1024 + torch.arange(power.shape[0], device=power.device) % 1024"
    sums = f"scatter_add(0, {where}, power).view(-1, 1024).sum(1) / 2"
    assert f'torch.zeros((BINS + 1) * 1024, device="cuda").{sums}' in made
    assert written("ind-slow-kernel", text.replace("(0, at", "(1, at"), "scatter_add") == []


def test_complex_numbers_of_a_decorated_function_are_computed_in_parts():
    text = """
    @torch.compile(dynamic=False)
    def turn(z, x):
        return z * torch.exp(2j * x)
    """
    (made,) = written("ind-extern-dominated", text, "exp(")
    assert "\n@torch.compile(dynamic=False)\n@_in_parts\ndef turn(z, x):\n" in made
    assert "torch.exp(_imaginary(2.0) * x)" in made


def test_writes_into_buffers_are_left_to_eager():
    text = """
    @torch.compile
    class Cube(torch.nn.Module):
        def put(self, level, reading):
            self.cube[level, 3] = reading
    """
    *_, made = written("ind-partial-write", text, "self.cube")
    assert "        _write(self.cube, (level, 3), reading)\n" in made


def test_writes_into_an_argument_are_left_to_eager():
    text = """
    @torch.compile
    def burst(book, ids, y):
        book[:64, ids] = y + 1
        book[ids] = 0
        spare = torch.zeros(4)
        spare[0] = y.sum()
        return spare
    """
    *_, made = written("ind-partial-write", text, "book[:64")
    assert "@torch.compiler.disable\ndef _write(x, index, value):\n    x[index] = value\n" in made
    assert "    _write(book, (slice(None, 64, None), ids), y + 1)\n" in made
    assert "    _write(book, ids, 0)\n    spare = torch.zeros(4)\n    spare[0] = y.sum()\n" in made
    ast.parse(made)


NEARLY = {
    "additions by index along another dimension": (
        "ind-slower-library",
        "index_add_",
        """
        def forces(self, total, q):
            return total.index_add_(1, self.i, q)
        """,
    ),
    "attention whose values are cast before": (
        "ind-wide-attention",
        "attention(",
        """
        def mix(q, k, v):
            v = v.to(q.dtype)
            return F.scaled_dot_product_attention(q, k, v)
        """,
    ),
    "attention whose values go to another device": (
        "ind-wide-attention",
        "attention(",
        """
        def mix(q, k, v):
            return F.scaled_dot_product_attention(q, k, v.to(q.device))
        """,
    ),
    "attention whose values become narrow": (
        "ind-wide-attention",
        "attention(",
        """
        def mix(q, k, v):
            return F.scaled_dot_product_attention(q, k, v.to(torch.bfloat16))
        """,
    ),
    "attention whose values are worked out in its call": (
        "ind-wide-attention",
        "attention(",
        """
        def mix(self, q, k, x):
            return F.scaled_dot_product_attention(q, k, self.v(x).to(q.dtype))
        """,
    ),
    "slices of a tensor that the loop writes into": (
        "ind-slice-gradients",
        "v = v",
        """
        for t in range(4):
            v = v + x[:, t]
            x[:, t + 1] = v
        """,
    ),
    "slices of another tensor in each turn": (
        "ind-slice-gradients",
        "v = v",
        """
        for t in range(4):
            v = v + x[:, t]
            x = x * 2
        """,
    ),
    "slices whose number changes in the loop": (
        "ind-slice-gradients",
        "v = v",
        """
        for t in range(4):
            t = 3 - t
            v = v + x[:, t]
        """,
    ),
    "slices by what is no number of a range": (
        "ind-slice-gradients",
        "v = v",
        """
        for t in order:
            v = v + x[:, t]
        """,
    ),
    "windows, and slices of slices": (
        "ind-slice-gradients",
        "v = v",
        """
        for t in range(4):
            v = v + x[:, t : t + 2] + x[:2, t] + x[..., t, :] + x[t, t] + x[:, t + 1]
        """,
    ),
    "slices whose new name is taken": (
        "ind-slice-gradients",
        "v = v",
        """
        x_parts = 3
        for t in range(4):
            v = v + x[:, t]
        """,
    ),
    "views of a tensor that is read as well": (
        "ind-partial-write",
        "index_copy_",
        """
        def serve(slot, k):
            keys, values = ring.unbind(2)
            keys.index_copy_(1, slot, k)
            return ring.sum()
        """,
    ),
    "an optimizer that can't be fused": (
        "ap-not-in-model",
        "opt.step()",
        """
        opt = torch.optim.Muon(net.parameters())
        opt.step()
        """,
    ),
    "one of several optimizers, in a loop over them": (
        "ap-not-in-model",
        "each.step()",
        """
        opts = [torch.optim.AdamW(net.parameters()), torch.optim.AdamW(head.parameters())]
        for each in opts:
            each.step()
        """,
    ),
    "param groups whose options change": (
        "ap-not-in-model",
        "opt.step()",
        """
        opt = torch.optim.NAdam(groups)
        opt.param_groups[1]["lr"] = 1e-4
        opt.step()
        """,
    ),
    "a loader with workers": (
        "ap-not-in-model",
        "in loader",
        """
        loader = DataLoader(tiles, num_workers=2, persistent_workers=True)
        for tile in loader:
            net(tile)
        """,
    ),
    "a mask of documents that change": (
        "ap-not-in-model",
        "mask = create",
        """
        def same(b, h, q, kv):
            return doc[q] == doc[kv]

        for x in batches:
            doc.copy_(documents(x))
            mask = create_block_mask(same, None, None, 512, 512)
            net(x, mask)
        """,
    ),
    "a mask of a window that grows": (
        "ap-not-in-model",
        "mask = create",
        """
        for x in batches:
            window += 1

            def local(b, h, q, kv):
                return q - kv < window

            mask = create_block_mask(local, None, None, 512, 512)
            net(x, mask)
        """,
    ),
    "a changed copy under another name": (
        "ind-whole-copy",
        "index_copy(",
        """
        def step(table, at, rows):
            new = table.index_copy(0, at, rows)
            return table, new
        """,
    ),
    "what is compiled is made there": (
        "ct-compile-in-step",
        "torch.compile(",
        """
        import torch

        def step(params, lr):
            def rule(p):
                p.sub_(lr * p.grad)

            for p in params:
                torch.compile(rule)(p)
        """,
    ),
    "weights that are handed in": (
        "ind-untrained-weights",
        "wanted =",
        """
        class Loss(nn.Module):
            def forward(self, net, x, y):
                wanted = net(y)
                return (x - wanted).square().mean()
        """,
    ),
    "a buffer that is made in two ways": (
        "ap-promoted-float64",
        "return x",
        """
        class Plate(torch.nn.Module):
            def __init__(self, table):
                super().__init__()
                self.rate = torch.from_numpy(table)

            def sharpen(self, table):
                self.rate = torch.from_numpy(table)

            def forward(self, x):
                return x * self.rate
        """,
    ),
    "what is computed in float64 on purpose": (
        "ap-promoted-float64",
        "return x",
        """
        RATE = torch.linspace(0, 1, 8, dtype=torch.float64)

        def scaled(x):
            return x * RATE
        """,
    ),
    "an operator that writes into what it makes itself": (
        "acc-dropped-operator",
        "noted(x)",
        """
        @torch.library.custom_op("my::noted", mutates_args=())
        def noted(x: torch.Tensor) -> None:
            x = x.clone()
            x[0] = 1
            y = x.abs_()

        noted(x)
        """,
    ),
    "an operator that says so": (
        "acc-dropped-operator",
        "noted(x)",
        """
        @torch.library.custom_op("my::noted", mutates_args=("x",))
        def noted(x: torch.Tensor) -> None:
            x.add_(1)

        noted(x)
        """,
    ),
    "what a method works out of something that changes": (
        "gd-guard-overhead",
        "return sum",
        """
        class Economy(torch.nn.Module):
            def __init__(self, goods):
                super().__init__()
                self.base = {good: 1.0 for good in goods}

            def level(self):
                return sum(self.base.values()) / len(self.base)

        def trade(economy):
            economy.base["salt"] = 2.0
        """,
    ),
    "what a method works out of what it is given": (
        "gd-guard-overhead",
        "return sum",
        """
        class Economy(torch.nn.Module):
            def __init__(self, goods):
                super().__init__()
                self.base = list(goods)

            def level(self, x):
                return sum(self.base) / len(x)
        """,
    ),
    "a gradient that is differentiated once": (
        "cap-fails-compiled",
        "loss.backward()",
        """
        def slope(critic, a):
            score = critic(a)
            g, = torch.autograd.grad(score.sum(), a)
            return g

        loss.backward()
        """,
    ),
    "a gradient of what two calls compute": (
        "cap-fails-compiled",
        "loss.backward()",
        """
        def slope(critic, a):
            score = critic(a)
            other = critic(2 * a)
            g, = torch.autograd.grad(score.sum() + other.sum(), a, create_graph=True)
            return g

        loss.backward()
        """,
    ),
    "a compiled function in a loop that reads values": (
        "ap-call-overhead",
        "a + 1",
        """
        @torch.compile
        def update(a):
            return a + 1

        def main(a):
            for step in range(60):
                a = update(a)
            print(a)
        """,
    ),
    "a compiled function that two others call": (
        "ap-call-overhead",
        "a + 1",
        """
        @torch.compile
        def update(a):
            return a + 1

        def one(a):
            for step in range(60):
                a = update(a)

        def two(a):
            for step in range(60):
                a = update(a)
        """,
    ),
    "a copy in a list": (
        "cap-copy-in-eager",
        "deepcopy",
        """
        model.compile()
        members = [copy.deepcopy(model) for _ in range(3)]
        """,
    ),
    "copies of one of two modules that are compiled in different ways": (
        "cap-copy-in-eager",
        "deepcopy",
        """
        model.compile()
        other.compile(dynamic=True)
        member = copy.deepcopy(model)
        """,
    ),
    "masked values of which the largest is taken": (
        "gb-dynamic-output-shape",
        "x[x",
        """
        def forward(x):
            return x[x > 0].max() + x[x > 0].sum()
        """,
    ),
    "masked values that are summed along a dimension": (
        "gb-dynamic-output-shape",
        "x[x",
        """
        def forward(x):
            return x[x > 0].sum(0)
        """,
    ),
    "masked values that are handed on": (
        "gb-dynamic-output-shape",
        "x[x",
        """
        def forward(x):
            return helper(x[x > 0]).sum()
        """,
    ),
    "masked values with two names": (
        "gb-dynamic-output-shape",
        "x[x",
        """
        def forward(x):
            y = x[x > 0]
            y = y + 1
            return y.sum()
        """,
    ),
    "masked values that are set": (
        "gb-dynamic-output-shape",
        "x[x",
        """
        def forward(x):
            x[x > 0] = 1
            return x.sum()
        """,
    ),
    "a part that a step chooses": (
        "gb-dynamic-output-shape",
        "[::2]",
        """
        def forward(x):
            return x[::2].sum()
        """,
    ),
    "a branch with an effect": (
        "gb-data-dependent",
        "if x",
        """
        def forward(x):
            if x.sum() > 0:
                x = x + 1
                print(x)
            return x
        """,
    ),
    "names that are set by each other": (
        "gb-data-dependent",
        "if x",
        """
        def forward(x, a, b):
            if x.sum() > 0:
                a = x
                b = 2 * x
            else:
                b = a
            return a + b
        """,
    ),
    "a name that one branch alone sets": (
        "gb-data-dependent",
        "if x",
        """
        def forward(x):
            if x.sum() > 0:
                y = x + 1
            return x
        """,
    ),
    "a test of Python's": (
        "gb-data-dependent",
        "if x",
        """
        def forward(x, y):
            if x is None or y:
                y = 1
            return y
        """,
    ),
    "a loop without an end": (
        "gb-data-dependent",
        "if x",
        """
        def forward(x):
            while True:
                x = x / 2
                if x.max() < 1:
                    break
            return x
        """,
    ),
    "a text of several lines": (
        "gb-side-effect-io",
        "print",
        '''
        def forward(x):
            print("""one
            two""")
            return x
        ''',
    ),
    "a function that is not compiled": (
        "rc-python-constant",
        "UNITS[unit]",
        """
        UNITS = {"m": 1.0}

        def metres(values, unit):
            return values * UNITS[unit]
        """,
    ),
    "a function that is compiled as the user says": (
        "rc-python-constant",
        "KINDS[kind]",
        """
        KINDS = {"sin": torch.sin}

        def mix(x, kind):
            return KINDS[kind](x) + x

        def build(mode):
            return torch.compile(mix, mode=mode)
        """,
    ),
    "a lookup that may not be asked for": (
        "rc-python-constant",
        "KINDS[kind]",
        """
        KINDS = {"sin": torch.sin}

        @torch.compile
        def mix(x, kind):
            if kind:
                x = KINDS[kind](x)
            return x
        """,
    ),
    "a lookup of what has changed": (
        "rc-python-constant",
        "KINDS[kind]",
        """
        KINDS = {"sin": 1.0}

        @torch.compile
        def mix(x, kind):
            kind = kind.lower()
            return KINDS[kind] * x
        """,
    ),
    "a list that is handed in": (
        "rc-container-length",
        "history.append",
        """
        history = []

        def step(x, history):
            history.append(x)
        """,
    ),
    "an operator with another shape": (
        "cap-customop-no-fake",
        "def rank",
        """
        @torch.library.custom_op("tools::rank", mutates_args=())
        def rank(x: torch.Tensor) -> torch.Tensor:
            return x.sort().values.mean(-1)
        """,
    ),
    "an operator with another dtype": (
        "cap-customop-no-fake",
        "def rank",
        """
        @torch.library.custom_op("tools::rank", mutates_args=())
        def rank(x: torch.Tensor) -> torch.Tensor:
            return torch.argsort(x)
        """,
    ),
    "a method that draws": (
        "ap-not-in-model",
        "torch.randn",
        """
        class Data:
            def row(self, i):
                return torch.randn(i)
        """,
    ),
    "a method that reads what grows": (
        "ap-not-in-model",
        "sum(self.rows",
        """
        class Data:
            def total(self, i):
                return sum(self.rows[:i])

            def add(self, row):
                self.rows.append(row)
        """,
    ),
    "a method that takes what comes next": (
        "ap-not-in-model",
        "self.waiting.get",
        """
        class Data:
            def next(self, i):
                return self.waiting.get()
        """,
    ),
    "a method that reads what others set": (
        "ap-not-in-model",
        "self.size * i",
        """
        class Data:
            def area(self, i):
                return float(self.size * i)

        data = Data()
        data.size = 9
        """,
    ),
    "decoded text that is changed": (
        "ap-not-in-model",
        "json.loads",
        """
        import json

        def rows(lines):
            for line in lines:
                row = json.loads(line)
                row["seen"] = True
                yield row
        """,
    ),
    "a mode whose figures end the loop": (
        "cap-nothing-compiled",
        "net =",
        """
        net = torch.compile(f)
        meter = FlopCounterMode(display=False)
        with meter:
            for x in batches:
                net(x)
                total = meter.get_total_flops()
                if total > 10**12:
                    break
        """,
    ),
    "a transform of a function that is called as well": (
        "gb-frame-skipped",
        "fit =",
        """
        @torch.compile
        def residual(x):
            return x.sin().sum()

        fit = torch.vmap(residual)
        whole = residual(x)
        """,
    ),
    "a transform of what is not compiled": (
        "gb-frame-skipped",
        "fit =",
        """
        def residual(x):
            return x.sin().sum()

        fit = torch.vmap(residual)
        """,
    ),
    "TorchScript that is saved": (
        "cap-nothing-compiled",
        "net =",
        """
        net = torch.jit.script(Net())
        net.save("net.pt")
        """,
    ),
    "a trace with an example that is drawn": (
        "cap-nothing-compiled",
        "net =",
        """
        net = torch.jit.trace(Net(), torch.randn(2, 2))
        """,
    ),
    "a module with a call of its own that is copied": (
        "cap-nothing-compiled",
        "net.compile",
        """
        class Net(torch.nn.Module):
            def __call__(self, pair):
                return self.forward(pair.x)

        net = Net()
        net.compile()
        shadow = copy.deepcopy(net)
        """,
    ),
    "another module's forward": (
        "cap-nothing-compiled",
        "net.compile",
        """
        net.compile()
        y = other.forward(x)
        """,
    ),
    "a rate that nothing changes": (
        "rc-python-constant",
        "update()",
        """
        optimizer = torch.optim.SGD(weights, lr=0.02)
        update = torch.compile(optimizer.step)
        update()
        """,
    ),
}


OPTIMIZER = """
from torch.nn.attention.flex_attention import create_block_mask

def nudge(p, g, state):
    state.mul_(0.9)
    state.add_(g)  # line 7, where the finding is
    p.sub_(state / state.norm())

def report(p):
    p.mul_(2).add_(1).sub_(3)
    print(p.norm())

def batches(p):
    yield p.mul_(2).add_(1).sub_(3)

@torch.compile
def loss(p):
    return p.mul(2).add_(1).sub_(3)

def parsed(line):
    return torch.tensor([float(each) for each in line.split(",")])

class Own(torch.optim.Optimizer):
    def step(self):
        for p in self.params:
            nudge(p, p.grad, self.state[p])
            self._pull(p)
            report(p), batches(p), loss(p), parsed(p)

    def _pull(self, p):
        p.mul_(0.9).clamp_(min=-1).sub_(1e-3)

def main():
    for step in range(100):
        mask = create_block_mask(rule, 1, 1, 8, 8)
        optimizer.step()

def make():
    def inner(p):
        p.add_(1).mul_(2).sub_(3)
    return inner

def packed(document):
    def same(b, h, q, k):
        return document[q] == document[k]
    return create_block_mask(same, None, None, 8, 8)
"""


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("nudge(p, p.grad", ["nudge"]),
        ("document[q]", ["torch.nn.attention.flex_attention.create_block_mask"]),
        ("state.mul_", ["nudge"]),
        ("self._pull(p)", ["Own._pull"]),
        ("create_block_mask(rule", ["torch.nn.attention.flex_attention.create_block_mask"]),
        ("report(p), ", []),  # writes, yields, is compiled, parses
        ("print(p", []),
        ("optimizer.step()", []),
        ("p.add_(1)", []),  # made again for each call
        ("for step", []),
    ],
)
def test_functions_to_compile_as_well(line, names):
    number = next(n for n, each in enumerate(OPTIMIZER.split("\n"), 1) if line in each)
    assert list(compiled_too(Source(OPTIMIZER), number)) == names


def test_what_is_compiled_as_well_is_offered_for_work_outside_only():
    def settings(rule):
        found = offered([finding(rule)], "/home/me", read=lambda _: OPTIMIZER)[0]
        return [each.settings for each in found]

    assert settings("ap-not-in-model") == [("compile=nudge",)]
    assert settings("ap-gemm-bound") == []


@pytest.mark.parametrize("case", NEARLY)
def test_what_is_nearly_a_pattern_is_left_alone(case):
    rule, line, text = NEARLY[case]
    assert written(rule, text, line) == []


def test_a_file_that_is_no_python_or_has_other_ends_of_lines_is_left_alone():
    text = "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n"
    place = finding("gb-data-dependent").location
    for other in (f"import torch\n{text}  )", f"import torch\n{text}".replace("\n", "\r\n")):
        found = finding("gb-data-dependent")
        assert edits(found, lambda _, other=other: other, "/home/me") == []
    assert place.line == 7


def test_every_pattern_is_for_a_rule_that_there_is():
    from traceview.rules.choice import choose

    assert PATTERNS.keys() <= {rule.name for rule in choose().rules}


def test_a_remedy_of_a_symptom_counts_for_its_cause():
    symptom = finding("rc-limit-hit", "torch._dynamo.config.recompile_limit=64", ms=5.0)
    (remedy,), spare = offered([finding("rc-tensor-meta", s=9.0, symptoms=(symptom,))], "/home/me")
    assert remedy.rules == ("rc-tensor-meta", "rc-limit-hit")
    assert spare == []
    cause = finding("rc-dynamic-false", "dynamic=None", s=9.0, symptoms=(symptom,))
    found = {one.name: one.rules for one in offered([cause], "/home/me")[0]}
    assert found == {
        "torch._dynamo.config.recompile_limit=64": ("rc-dynamic-false", "rc-limit-hit"),
        "dynamic=None": ("rc-dynamic-false",),
    }


def test_what_saves_compiling_runs_in_processes_of_its_own():
    text = f"{HEAD}\n\ndef f():\n    x()\n    torch._dynamo.reset()\n"
    (remedy,), _ = offered([finding("ct-repeated-same-compile")], "/home/me", read=lambda _: text)
    assert remedy.alone


def test_a_patch_has_a_price():
    body = "    x = x + 1\n    if x.sum() > 0:\n        x = x + 1\n    return x\n"
    text = f"{HEAD}\n\ndef f(x):\n{body}"
    (remedy,), _ = offered([finding("gb-data-dependent")], "/home/me", read=lambda _: text)
    assert (remedy.name, remedy.price) == ("patch train.py:7", ("both sides are computed",))
    assert remedy.patch.startswith("--- train.py\n+++ train.py\n@@ -6,")


def test_what_a_change_needs_is_imported():
    text = """
    def make(by):
        def scale(x):
            return x * by

        return scale

    step(make(2))
    """
    found = finding("rc-backend-mismatch")
    (made,) = edits(found, lambda _: dedent(text), "/home/me")
    assert "+import functools\n" in made.patch
    assert "+@functools.cache\n def make(by):" in made.patch
