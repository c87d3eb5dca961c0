"""No output holds a secret: traces, caches, tables, reprs, errors, warnings, logs."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.models.fake_server import USAGE, FakeServer, Handler, completion, error

ROOT = Path(__file__).parents[2]
SECRETS = {
    "environment": "planted-env-aQ84zR17",
    "argument": "planted-arg-bW29kT63",
    "user": "planted-user-cE51mY40",
    "password": "planted-pass-dR/76+nU",
    "query": "planted-query-eT38pI95",
    "header": "planted-header-fY60qO12",
    "body": "planted-body-gU97rP28",
}


class Echoing(Handler):
    """Quotes the whole request: its address, its headers, its body."""

    def _quoted(self) -> str:
        return f"You sent {self.path} {dict(self.headers)} {self.server.requests[-1]}"

    def behave(self, name: str) -> None:
        if name == "echo":
            self.send(401, error(self._quoted()))
        elif name == "tell":
            message = {"content": self._quoted(), "reasoning_content": self._quoted()}
            self.send(200, completion(message, usage=USAGE))
        else:
            super().behave(name)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Everything that came of a program that uses secrets, by where it is."""
    server, folder = FakeServer(), tmp_path_factory.mktemp("planted")
    server.RequestHandlerClass = Echoing
    given = {**SECRETS, "password": quote(SECRETS["password"], safe="")}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.models.planted", server.url, str(folder)],
            input=json.dumps(given).encode(),
            capture_output=True,
            timeout=300,
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": SECRETS["environment"]},
        )
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr[-3000:].decode()
    sent = " ".join(server.keys) + json.dumps(server.requests)
    for name in ("environment", "argument", "body"):
        assert SECRETS[name] in sent  # they were used
    pair = f"{SECRETS['user']}:{SECRETS['password']}".encode()
    assert base64.b64encode(pair).decode() in sent
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".jsonl", ".sqlite", ".csv"}
    return {"stdout": done.stdout, "stderr": done.stderr} | {
        str(path.relative_to(folder)): path.read_bytes() for path in files
    }


@pytest.mark.parametrize("name", SECRETS)
def test_a_planted_secret_is_in_no_output(outputs: dict[str, bytes], name: str) -> None:
    secret = SECRETS[name].encode()
    pair = f"{quote(SECRETS['user'])}:{SECRETS['password']}".encode()
    forms = [secret, quote(secret, safe="").encode(), base64.b64encode(pair)]
    found = {
        f"{place}: …{data[max(0, data.find(form) - 200) : data.find(form) + 80]!r}…"
        for place, data in outputs.items()
        for form in forms
        if form in data
    }
    assert not found, "\n".join(sorted(found))


def test_what_was_looked_through_holds_what_happened(outputs: dict[str, bytes]) -> None:
    for text in (b"echo", b"You sent", b"***", b"FAILED", b"COMPLETED", b"401"):
        assert any(text in data for data in outputs.values()), text
