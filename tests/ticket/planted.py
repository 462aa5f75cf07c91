"""Secrets of many kinds, planted in every place of a run folder, each with a value of its own."""

import base64
import gzip
import html
import json
import random
import string
from pathlib import Path
from urllib.parse import quote

WORD = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


class Drawn:
    """Random words, the same in every test session."""

    def __init__(self):
        self._random = random.Random(7)

    def word(self, length, letters=WORD):
        """Begins with a letter and has digits."""
        body = "".join(self._random.choices(letters, k=length - 3))
        return f"{self._random.choice('abcdef')}{self._random.randrange(10)}{body}7"

    def number(self, most):
        return self._random.randrange(2, most)


#: Kind → the secret itself, and how it is written in a line.
KINDS = {
    "hugging face": lambda d: (f"hf_{d.word(34)}", "{}"),
    "github": lambda d: (f"ghp_{d.word(36)}", "{}"),
    "github oauth": lambda d: (f"gho_{d.word(36)}", "{}"),
    "github fine-grained": lambda d: (f"github_pat_{d.word(22)}_{d.word(59)}", "{}"),
    "gitlab": lambda d: (f"glpat-{d.word(20)}", "{}"),
    "slack": lambda d: (f"xoxb-{d.word(24)}", "{}"),
    "openai": lambda d: (f"sk-{d.word(44)}", "{}"),
    "anthropic": lambda d: (f"sk-ant-api03-{d.word(60)}", "{}"),
    "stripe": lambda d: (f"sk_live_{d.word(24)}", "{}"),
    "google": lambda d: (f"AIza{d.word(35)}", "{}"),
    "aws id": lambda d: (f"AKIA{d.word(16, string.ascii_uppercase + string.digits).upper()}", "{}"),
    "aws secret": lambda d: (f"{d.word(19)}/{d.word(20)}", "aws_secret_access_key = {}"),
    "json web token": lambda d: (f"eyJ{d.word(20)}.eyJ{d.word(30)}.{d.word(30)}", "{}"),
    "npm": lambda d: (f"npm_{d.word(36)}", "{}"),
    "pypi": lambda d: (f"pypi-AgEI{d.word(60)}", "{}"),
    "sendgrid": lambda d: (f"SG.{d.word(22)}.{d.word(43)}", "{}"),
    "password": lambda d: (f"{d.word(9)}!{d.word(4)}", "password={}"),
    "password option": lambda d: (f"{d.word(12)}", "train.py --db-password {} --lr 0.1"),
    "token": lambda d: (d.word(24), "token={}"),
    "api key": lambda d: (d.word(32, HEX), "api_key: {}"),
    "client secret": lambda d: (d.word(20), "client_secret={}"),
    "bearer": lambda d: (d.word(30), "Authorization: Bearer {}"),
    "basic": lambda d: (base64.b64encode(d.word(18).encode()).decode(), "Authorization: Basic {}"),
    "cookie": lambda d: (d.word(26), "Cookie: sessionid={}"),
    "database": lambda d: (d.word(14), "postgresql://trainer:{}@db.example:5432/runs"),
    "proxy": lambda d: (d.word(14), "https://{}@proxy.example/x"),
    "signed address": lambda d: (d.word(40, HEX), "https://bucket.example/o?X-Amz-Signature={}"),
    "e-mail": lambda d: (f"{d.word(8)}.{d.word(6)}@{d.word(9, HEX)}.org", "from {}"),
    "address": lambda d: (f"10.{d.number(250)}.{d.number(250)}.{d.number(250)}", "connect to {} ."),
    "address 6": lambda d: (f"2001:db8:{d.number(9999)}::{d.number(9999)}", "peer [{}]:29500"),
    "home": lambda d: (f"/home/{d.word(9)}", "File {}/lib/x.py, line 3"),
}  # fmt: skip
PLACES = (
    *("log", "exception", "payload", "packed", "wide", "url", "base64", "source"),
    *("argument", "event", "escaped"),
)


def plant(run: Path) -> list[tuple[str, str, str]]:
    """Write secrets into the files of ``run``: kind, place, secret."""
    drawn, planted = Drawn(), []
    lines = {place: [] for place in PLACES}
    for kind, make in KINDS.items():
        for place in PLACES:
            secret, written = make(drawn)
            planted.append((kind, place, secret))
            lines[place].append(written.format(secret))
    raw = run / "raw" / "cold"
    structured = next((raw / "structured").iterdir())
    _append(raw / "torch_logs.txt", [f"V1121 21:50 {line}" for line in lines["log"]])
    errors = [f"RuntimeError: can't open ({line})" for line in lines["exception"]]
    _append(raw / "stderr.txt", ["Traceback (most recent call last):", *errors])
    payload = ["\t" + json.dumps({"loc": f"x = 1\n{line}", "n": 1}) for line in lines["payload"]]
    _append(structured, payload)
    with gzip.open(raw / "profile.json.gz", "wt") as file:
        json.dump({"traceEvents": [{"name": line, "ts": 1} for line in lines["packed"]]}, file)
    (raw / "wide.txt").write_text("\n".join(lines["wide"]), encoding="utf-16")
    _append(raw / "torch_logs.txt", [f"GET /log?m={quote(line, safe='')}" for line in lines["url"]])
    packed = [base64.b64encode(b" " * n + x.encode()) for n, x in enumerate(lines["base64"])]
    _append(raw / "torch_logs.txt", [f"blob {each.decode()}" for each in packed])
    source = next((run / "raw" / "sources").iterdir())
    _append(source, [f"X{n} = {line!r}" for n, line in enumerate(lines["source"])])
    escaped = ["".join(f"\\u{ord(c):04x}" for c in line) for line in lines["escaped"]]
    _append(structured, [f'\t{{"loc": "{line}"}}' for line in escaped])
    events = next(raw.glob("events-*.jsonl"))
    _append(events, [json.dumps({"event": "note", "what": line}) for line in lines["event"]])
    manifest = json.loads((run / "run.json").read_text())
    manifest["target"] += lines["argument"]
    (run / "run.json").write_text(json.dumps(manifest))
    planted += _plant_elsewhere(run, drawn, structured, events)
    return planted


def _plant_elsewhere(run, drawn, structured, events):
    """What is secret by its place: guards, variables, names of files, private keys, hosts."""
    raw, planted = run / "raw" / "cold", []
    for number in range(8):
        secret = f"Blue{drawn.word(8)}"
        planted.append(("string constant", "guard", secret))
        guard = f"L['name{number}'] == '{secret}'"
        _append(structured, [f'\t{{"guard": "{guard}"}}', f"\t| +- EQUALS_MATCH: {guard}"])
        _append(raw / "torch_logs.txt", [f"    - 0/{number}: {guard}"])
        value = f"proj-{drawn.word(10)}"
        planted.append(("variable", "event", value))
        event = {"event": "setting", "t": 1.0, "section": "env", "name": f"MY_VAR_{number}"}
        _append(events, [json.dumps({**event, "value": value, "default": None})])
        shown = f"part-{drawn.word(10)}"
        planted.append(("variable", "log", shown))
        _append(raw / "stderr.txt", [f"environ({{'APP_NAME_{number}': '{shown}', 'HOME': '/'}})"])
        key = [drawn.word(64) for _ in range(4)]
        planted += [("private key", "log", line) for line in key]
        begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
        where = (raw / "stderr.txt", structured)[number % 2]
        block = [begin, *key, end]
        _append(where, block if number % 2 == 0 else ["\t" + json.dumps({"k": "\n".join(block)})])
        name = f"glpat-{drawn.word(20)}"
        planted.append(("gitlab", "file name", name))
        (raw / f"log-{name}.txt").write_text("nothing\n")
        cells = [drawn.word(16) for _ in range(4)]
        planted += [("key", "table", cell) for cell in cells]
        rows = ("| api_key | {} |", "│ password │ {} │", "WANDB_API_KEY   {}", "('token', '{}')")
        _append(raw / "torch_logs.txt", map(str.format, rows, cells))
        host = f"gpu{drawn.word(6)}"
        planted.append(("host", "log", host))
        _append(raw / "torch_logs.txt", [f'"hostname": "{host}"', f"[{host}:0] ready"])
    return planted


def forms(secret):
    """The bytes of a secret as a reader could find them."""
    data = secret.encode()
    yield from (data, quote(secret, safe="").encode(), html.escape(secret).encode())
    yield from (secret.encode("utf-16-le"), secret.encode("utf-16-be"))
    yield "".join(f"\\u{ord(c):04x}" for c in secret).encode()
    for start in range(3):
        yield base64.b64encode(b"\0" * start + data)[(start * 8 + 5) // 6 : -4]


def _append(path, lines):
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(("", *lines, "")))
