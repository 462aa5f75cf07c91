"""What is masked in arguments, variables and messages, and what is left as it is."""

import pytest

from traceview.collectors.child.secrets import (
    MASK,
    is_secret,
    masked,
    masked_arguments,
    masked_message,
    masked_variable,
)

SECRET = "s3cr3t-w0rd"
SECRETS = [
    ["--password", SECRET], ["-password", SECRET], [f"--password={SECRET}"], [f"--token={SECRET}"],
    ["--api-key", SECRET], ["--apiKey", SECRET], [f"--wandb.api_key={SECRET}"],
    ["--hf_token", SECRET],
    [f"db.password={SECRET}"], [f"+trainer.logger.api_key={SECRET}"], [f"++secret={SECRET}"],
    ["--set", f"auth.token={SECRET}"], [f"--aws-secret-access-key={SECRET}"], ["--key", SECRET],
    [f"redis://:{SECRET}@cache:6379/0"], [f"https://me:{SECRET}@host/x?a=b"], [f"https://{SECRET}@host/r.git"],
    [f"--db=postgresql+psycopg://me:p@{SECRET}@host/db"], [f"--proxy=me:{SECRET}@proxy:8080"],
    ["--config", f'{{"password": "{SECRET} {SECRET}"}}'], ["--config", f"{{'api_key':'{SECRET}'}}"],
    [f"https://host/log?X-Amz-Signature={SECRET}&part=1"], [f"https://host/log?sv=1&sig={SECRET}"],
    ["--header", f"Authorization: Bearer {SECRET}"],
    ["--run", f"train.py --password {SECRET} --lr 1"],
    [f"--url=https://host/log?a=1&access_token={SECRET}#x"], [f"https://host:80/log?token={SECRET}"],
    ["--dbpassword", SECRET], ["--hftoken", SECRET], ["--api-keys", SECRET],
    [f"--access_tokens={SECRET}"],
    [f"--password=a {SECRET}"], [f"--token=[{SECRET}]"], [f"password=a,{SECRET}&{SECRET}"],
    [f"--env=HF_TOKEN={SECRET}"], ["--env", f"AWS_SECRET_ACCESS_KEY={SECRET}"],
    [f"simplecache::https://me:{SECRET}@host/x"], [f"--password='{SECRET} {SECRET}'"],
    ["-H", f"Authorization: Token {SECRET}"], ["-H", "authorization: Basic x:" + SECRET],
    ["-H", f"Cookie: a=b; id={SECRET}"], [f"--json={{'password': 'a\\'{SECRET}'}}"],
    ["--config", f'{{"token": "a\\"{SECRET}"}}'], [f"https://me:a/{SECRET}@host/x"],
    [f"postgres://me:#{SECRET}?@host/x"], ["-u", f"me:{SECRET}"], ["--user", f"me:{SECRET}"],
]  # fmt: skip
PLAIN = [
    "train.py", "--lr", "1e-3", "--max-tokens", "512", "--tokens", "9", "--tokenizer", "gpt2",
    "--num-key-value-heads", "8", "--pad-token", "<pad>", "--sort-key=loss", "--key-dim", "64",
    "--author", "me", "--passes", "3", "--monitor", "val/loss", "a@b.org", "s3://bucket/key=1/x",
    "ssh://git@host/x.git", "https://host/a@b", "--device=cuda:0", "model.hidden=64", "12:30",
    "", "-", "--", "--monitor=val_acc:max", "--keys", "a,b", "--compass", "x", "--eos_token=</s>", "file:///tmp/x",
    "-u", "1000:1000", "--user", "me", "https://host:80/a@b", "https://host/a:b@c",
]  # fmt: skip


@pytest.mark.parametrize("words", SECRETS)
def test_a_secret_is_masked_and_its_name_is_not(words):
    found = masked_arguments(["train.py", *words, "--lr", "0.1"])
    assert SECRET not in " ".join(found)
    assert any(MASK in word for word in found)
    assert (found[0], found[-2:]) == ("train.py", ["--lr", "0.1"])
    assert len(found) == len(words) + 3
    assert masked_arguments(found) == found


def test_other_arguments_stay():
    assert masked_arguments(PLAIN) == PLAIN


def test_a_switch_before_another_option_hides_nothing():
    assert masked_arguments(["--auth", "--lr", "3"]) == ["--auth", "--lr", "3"]


@pytest.mark.parametrize(
    "token",
    ["hf_" + "aB1" * 9, "ghp_" + "x1" * 18, "AKIA" + "Q" * 16, "eyJhbGciOiJI.eyJzdWIiOiIx.sig",
     "ASIA" + "Q" * 16, "npm_" + "a1" * 18, "gsk_" + "a1" * 20, "nvapi-" + "a-" * 20,
     "dapi" + "0f" * 16,
     "sk_live_" + "a1" * 12, "SG." + "a1" * 11 + "." + "b_" * 20, "ya29." + "a-" * 20],
)  # fmt: skip
def test_tokens_of_known_services_are_masked_wherever_they_stand(token):
    assert token not in masked(f"login failed for {token}.")


MESSAGES = [
    f"OperationalError: no connection: host=h password={SECRET}", f"{{'password': '{SECRET}'}}",
    f"401 for url: https://host/x?access_token={SECRET}",
    f"https://host/x?X-Amz-Signature={SECRET}&y=1",
    f"Command '['x', '--password', '{SECRET}']' failed",
    f"unrecognized arguments: --api-key {SECRET}",
    f"connect('me', passwd='{SECRET}') failed", f"AWS_SECRET_ACCESS_KEY={SECRET} is refused",
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET.replace('-', '')}\n-----END RSA PRIVATE KEY-----",
    f"POST https://hooks.slack.com/services/T0/B0/{SECRET.replace('-', '')}: 404",
]  # fmt: skip
PROSE = [
    "unexpected key: x", "max() got key=CPU", "KeyError: 'token'", "invalid token: ')'",
    "the pass: fuse_attention failed", "sort_key=loss", "Unexpected key(s) in state_dict: \"a.b\"",
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_names_no_secret(message):
    found = masked_message(message)
    assert SECRET not in found
    assert SECRET.replace("-", "") not in found
    assert MASK in found
    assert masked_message(found) == found


def test_prose_about_keys_and_tokens_stays():
    assert [masked_message(text) for text in PROSE] == PROSE


def test_variables():
    assert masked_variable("TORCH_HUB_TOKEN", "x") == MASK
    assert masked_variable("SSHPASS", "x") == masked_variable("LDAP_BINDPW", "x") == MASK
    assert masked_variable("NCCL_SOCKET_IFNAME", "eth0") == "eth0"
    url = masked_variable("TORCHINDUCTOR_REMOTE_CACHE_URL", f"redis://:{SECRET}@cache:1")
    assert url == f"redis://:{MASK}@cache:1"
    url = masked_variable("TORCHINDUCTOR_REMOTE_CACHE_URL", f"cache:6379?password={SECRET}")
    assert url == f"cache:6379?password={MASK}"


def test_long_texts_take_little_time():
    for text in ("a" * 200_000, "a=" * 100_000, "--a " * 50_000, "://" * 60_000, "a:" * 100_000):
        masked(text)


@pytest.mark.parametrize("name", ["sort-key", "maxTokens", "pad_token", "passes", "", "hidden"])
def test_names_of_no_secret(name):
    assert not is_secret(name)
