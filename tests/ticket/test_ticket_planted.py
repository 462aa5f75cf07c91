"""No planted secret is in a ticket, whatever its kind, its place and its form."""

import gzip
import json
import zipfile
from collections import Counter

import pytest
from click.testing import CliRunner
from planted import KINDS, PLACES, forms, plant
from recordings import unpack

from traceview.cli.runs import ticket_command


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What was planted, and every byte of the ticket: member → its name and its text, unpacked."""
    run = unpack("bad-cap_compile_crash", tmp_path_factory.mktemp("planted"))
    secrets = plant(run)
    out = tmp_path_factory.mktemp("ticket")
    asked = ["--no-run-env", "-o", str(out), str(run)]
    done = CliRunner().invoke(ticket_command, asked, catch_exceptions=False)
    assert done.exit_code == 0
    members = {"ticket.md beside": (out / "ticket.md").read_bytes()}
    with zipfile.ZipFile(out / "ticket.zip") as archive:
        for name in archive.namelist():
            data = archive.read(name)
            members[name] = name.encode() + (
                gzip.decompress(data) if name.endswith(".gz") else data
            )
    return secrets, members


def test_enough_is_planted(made):
    secrets, _ = made
    assert len({secret for _, _, secret in secrets}) == len(secrets) >= 300
    assert len({kind for kind, _, _ in secrets}) >= 30
    assert len({place for _, place, _ in secrets}) >= len(PLACES)


def test_no_secret_is_in_the_ticket(made):
    secrets, members = made
    left = Counter(
        (kind, place)
        for kind, place, secret in secrets
        if any(form in data for form in forms(secret) for data in members.values())
    )
    assert left == {}


def test_what_is_not_private_stays(made):
    _, members = made
    log = next(data for name, data in members.items() if "/structured/" in name)
    assert b'"pytorch_version": "2.13.0+cpu"' in log
    assert b"torch.ops.aten.tanh.default" in log
    assert b'"size": [190, 20]' in log
    page = members["ticket.md"].decode()
    assert "InductorError" in page
    assert "KeyError: 'buf9'" in page


def test_json_stays_json(made):
    _, members = made
    for name, data in members.items():
        text = data.removeprefix(name.encode()).decode()
        if name.endswith(".jsonl"):
            assert [json.loads(line) for line in text.splitlines() if line.strip()]
        elif name.endswith((".json", ".json.gz")):
            assert json.loads(text)


def test_the_page_counts_what_was_replaced(made):
    _, members = made
    page = members["ticket.md"].decode()
    for kind in ("password", "GitHub token", "JSON web token", "IP address", "home folder"):
        assert f"| {kind} | " in page
    assert len(KINDS) >= 30
