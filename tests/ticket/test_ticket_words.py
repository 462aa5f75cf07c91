"""What is taken out of texts, what stays, and the forms in which a value is found."""

import base64
import gzip
import json
import random
import re
from io import BytesIO
from urllib.parse import quote

import pytest
from recordings import diagnosis_of

from traceview.collectors.child.secrets import looks_random, secrets_in
from traceview.contracts import text_of
from traceview.diagnosis import to_json
from traceview.ticket.bundle import pieces
from traceview.ticket.private import is_harmless
from traceview.ticket.redaction import Redaction, latin, packed_forms, text_forms
from traceview.ticket.source import hide_source, without_strings

STAYS = [
    "nvidia-cudnn-cu12 9.10.2.21", "nvidia-cublas-cu12==12.8.4.1", "cuDNN version: 9.1.0.70",
    "libx.so.1.2.3.4", "127.0.0.1:29500 and 0.0.0.0", "scores = q@k.transpose(-2, -1)",
    "@torch.compile", "at::native::add", "12:30:01.123",
    'key: "fvbl3frq4kj6lsl7iqpy5fi765adh5g7kadw6cuhrep6ba75xsku"',
    "token = tokenizer.encode(text)", "def f(x, token=None):", "password: str",
    "sorted(rows, key=lambda row: row[1])", 'primals_1: "f32[64, 256]"', "triton_poi_fused_add_0",
    "L['self']._modules['layer1'], 96", "mode == 'reduce-overhead'",
    "BLOCK_M=128, ACC_TYPE='tl.float32'", "{'XBLOCK': 'constexpr'}", "pad_token: <pad>",
    "sort_key=loss", "--max-tokens 512", "--lr 0.1", "secret = getpass()",
    "signature={'in_ptr0': '*fp32'}", "TORCH_LOGS=+dynamo", "CUDA_VISIBLE_DEVICES=0",
    "unexpected key: model.layer1", "docker run -u 1000:1000 image", "python -u train.py:12",
    "token | type: int64[32, 128]", "('token', 'embedding_layer_12')", "password -> forward_12_0",
]  # fmt: skip
GOES = [
    ("Cookie: a=1; session=Zx81kQ22pp; b=2", "Zx81kQ22pp"),
    ("a\\npassword=Zx81kQ22pp", "Zx81kQ22pp"),
    ('{\\"api_key\\": \\"Zx81kQ22pp\\"}', "Zx81kQ22pp"),
    ("my token is aB3dE5fG7hJ9kL1mN3pQ", "aB3dE5fG7hJ9kL1mN3pQ"),
    ("password=ab1", "ab1"),
    ("| name | api_key | Zx81kQ22ppLw |", "Zx81kQ22ppLw"),
    ("│ token │ Zx81kQ22ppLw │", "Zx81kQ22ppLw"),
    ("<password>Zx81kQ22ppLw</password>", "Zx81kQ22ppLw"),
    ("curl -u ada:Zx81kQ22 address", "Zx81kQ22"),
    ("L['city'] == 'Springfield 12'", "Springfield 12"),
    ("export DEPLOY_TARGET=blue-7-prod", "blue-7-prod"),
    ("environ({'DEPLOY_TARGET': 'blue-7-prod'})", "blue-7-prod"),
    ("peer 2001:db8:85a3::8a2e:370:7334 down", "2001:db8"),
    ("/home/somebody1/x.py", "somebody1"),
    ('"user_name": "somebody1"', "somebody1"),
]


def redacted(text, *more):
    """The last of several texts, all of which were read before."""
    redaction = Redaction()
    for each in (text, *more):
        redaction.learn(latin(each))
    return redaction.redacted(latin((text, *more)[-1]), "f").encode("latin-1").decode()


@pytest.mark.parametrize("text", STAYS)
def test_what_is_torch_s_stays(text):
    assert redacted(text) == text
    assert (
        redacted(f'{{"a": 1, "b": {json.dumps(text)}}}') == f'{{"a": 1, "b": {json.dumps(text)}}}'
    )


@pytest.mark.parametrize(("text", "private"), GOES)
def test_what_is_private_goes(text, private):
    assert private not in redacted(text)
    long = json.dumps({"a": "x, " * 200, "b": f"{text}\n{text}"})
    assert private not in redacted(long)
    assert json.loads(redacted(long))["a"]


def test_a_value_goes_wherever_else_it_is():
    value = "Zx8/1k+Q22 pu"
    places = [
        value,
        json.dumps(value),
        quote(value),
        re.sub("%..", lambda found: found[0].lower(), quote(value, safe="")),
        value.encode("utf-16-le").decode("latin-1"),
    ]
    places += [base64.b64encode(b"x" * n + value.encode() + b"yz").decode() for n in range(4)]
    for place in places:
        text = redacted(f'password="{value}"', f"found {place} here")
        assert text.startswith("found ")
        assert text.endswith(" here")
        assert "[masked password]" in text, place
    for place in (json.dumps("Zx-ü-8"), quote("Zx-ü-8"), "Zx-ü-8"):
        assert "[masked password]" in redacted("password='Zx-ü-8'", f"found {place} here")


def test_numbers_of_logs_are_no_one_s_password():
    log = '{"ts": 1795297123456, "v": "x10.1.2.3-rc"}'
    assert redacted("password=123456 from 10.1.2.3", log) == log
    assert redacted("password=123456 from 10.1.2.3") == (
        "password=[masked password] from [masked IP address]"
    )


def test_every_offset_in_base64_is_known():
    drawn = random.Random(3)
    for _ in range(300):
        value = drawn.randbytes(drawn.randrange(6, 40)).decode("latin-1")
        before, after = drawn.randbytes(drawn.randrange(9)), drawn.randbytes(drawn.randrange(9))
        data = before + value.encode("latin-1") + after
        packed = {base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()}
        forms = list(packed_forms(value))
        assert all(any(form in text for form in forms) for text in packed)
        assert value in set(text_forms(value))


def test_names_and_paths_go_as_wholes_only():
    redaction = Redaction()
    redaction.add("/srv/team/proj", "project folder", "$PROJECT")
    redaction.person("alicia")
    redaction.person("train")
    text = redaction.redacted("/srv/team/proj/a.py /srv/team/proj-2 alicia: malicia alicias train")
    assert "alicia" not in redaction.redacted("%20alicia%20 \\nalicia\\n")
    left = "[masked host or user name]: malicia alicias train"
    assert text == f"$PROJECT/a.py /srv/team/proj-2 {left}"


def test_a_key_in_several_lines_goes_and_is_never_cut_in_two():
    body = [f"{n:02d}" + "Ab1/" * 15 for n in range(30)]
    key = "\n".join(("-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"))
    data = ("x" * 99 + "\n").encode() * 41_943 + key.encode() + b"\nrest\n"
    redaction, parts = Redaction(), list(pieces(BytesIO(data)))
    assert len(parts) >= 2
    for part in parts:
        redaction.learn(part)
    text = "".join(map(redaction.redacted, parts))
    assert not any(line in text for line in body)
    assert text.endswith("-----END PRIVATE KEY-----\nrest\n")


def test_pieces_are_whole_lines_and_all_of_a_text():
    data = b"".join(b"%d," % n * (n % 900) + b"\n" for n in range(6000))
    parts = list(pieces(gzip.GzipFile(fileobj=BytesIO(gzip.compress(data)))))
    assert "".join(parts).encode("latin-1") == data
    assert all(part.endswith("\n") for part in parts)
    wide = "password=x1y2z3\n".encode("utf-16")
    assert list(pieces(BytesIO(wide))) == ["password=x1y2z3\n"]
    one = b"word " * 4_000_000
    assert "".join(pieces(BytesIO(one))).encode() == one


def test_strings_of_the_user_s_source():
    source = '''"""Doc of Bluebird."""
def f(x, *, mode="max-autotune"):
    print(f"run {x} of Bluebird {x:.2f}", d["key"], "--steps")
    return torch.compile(f, backend="inductor")
'''
    redaction = Redaction()
    text = without_strings(source, redaction)
    assert "Bluebird" not in text
    for kept in ('mode="max-autotune"', 'd["key"]', '"--steps"', 'backend="inductor"', "{x:.2f}"):
        assert kept in text
    compile(text, "f", "exec")
    assert "Bluebird" not in redaction.redacted("L['a'] == 'Doc of Bluebird.'")
    assert "Bluebird" not in without_strings("x = = 'Bluebird y'\nz = 'Bluebird z'", Redaction())


@pytest.mark.parametrize("name", ["bad-gb_item", "bad-rc_python_constant", "healthy-train_eval"])
def test_words_of_findings_are_not_replaced(name):
    """Of ordinary words of a diagnosis, at most 1 % may be taken for something private."""
    found = to_json(diagnosis_of(name))
    texts = [
        each[key] for each in found["findings"] for key in ("title", "explanation", "what_to_do")
    ]
    texts += [row["text"] for each in found["findings"] for row in each["evidence"]]
    texts += [found["verdict"]["sentence"], text_of(found["explanation"])]
    redaction = Redaction()
    private = redaction.in_texts(texts)
    words = sum(len(re.findall(r"[A-Za-z]{2,}", text)) for text in texts)
    assert words > 100
    assert sum(text.count("[masked") for text in private) <= words / 100


def test_strict_hides_modules_and_what_dynamo_makes_of_names():
    redaction = Redaction("strict")
    source = "def sharpen(x):\n    return x\n"
    hide_source("0f-encoder.py", source, redaction, "acme/nets/encoder.py")
    hide_source("1f-train.py", "def forward(x):\n    return x\n", redaction, "src/utils/tools.py")
    for text, hidden in (
        (
            "$PROJECT/acme/nets/encoder.py:3",
            "$PROJECT/user_module_1/user_module_2/user_file_1.py:3",
        ),
        ("acme.nets.encoder.sharpen", "user_module_1.user_module_2.user_file_1.user_function_1"),
        (
            "G['__import_acme_dot_nets_dot_encoder'].k",
            "G['__import_user_module_1_dot_user_module_2_dot_user_file_1'].k",
        ),
        ("torch_dynamo_resume_in_sharpen_at_12", "torch_dynamo_resume_in_user_function_1_at_12"),
        ("python -m acme.train", "python -m user_module_1.train"),
        ("torch/utils/_pytree.py", "torch/utils/_pytree.py"),
        ("torch_dynamo_resume_in_forward_at_12", "torch_dynamo_resume_in_forward_at_12"),
        ("acmeist", "acmeist"),
    ):
        assert redaction.redacted(text) == hidden


def test_words_of_the_masks_are_no_value():
    redaction = Redaction()
    redaction.constant("JSON web token")
    redaction.add("key or token", "password")
    redaction.add("", "password")
    text = redaction.in_text("password=Zx81kQ22pp is a 'JSON web token'")
    assert text == "password=[masked password] is a 'JSON web token'"
    assert redaction.leaks(text) is None


def test_random_words():
    assert all(map(looks_random, ("aB3dE5fG7hJ9", "9f86d081884c7d659a2f", "a1b2c3d4")))
    assert not any(
        map(looks_random, ("buf12345", "float32", "max-autotune", "layer10", "12345678"))
    )
    assert is_harmless("ATEN,TRITON")
    assert is_harmless("mine::soft_sign")
    assert is_harmless("(Tensor x, int n) -> Tensor")
    assert not is_harmless("ATEN,Bluebird")


def test_a_word_of_the_source_that_logs_have_as_a_key_stays_there():
    redaction = Redaction()
    source = "print('name', 'compiled', 'Bluebird 7')"
    assert without_strings(source, redaction).count("[masked string") == 3
    text = redaction.redacted('{"name": "compiled", "x": "Bluebird 7"}')
    assert text == '{"name": "compiled", "x": "[masked string 3]"}'


def test_long_texts_take_little_time():
    for text in (
        "a" * 200_000,
        "a=" * 100_000,
        "--a " * 50_000,
        "://" * 60_000,
        "a:" * 100_000,
        '"' * 99_999,
    ):
        redacted(text)
        list(secrets_in(text))
