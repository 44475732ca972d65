"""memctl behind a real nginx and a real Caddy, by the files of infra/deploy/proxy. `make test-own-servers` runs this.

(It is no test that `make test` collects.) Only oauth2-proxy is played: who has a cookie of it is whom the cookie names.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from apis import TOKEN, Api, serving
from asked import ATLAS, Remembered, remembered
from clusters import connects, free_port, make_folder, needed, proxy

from memctl.api.write import keys
from memctl.infra.settings import load_settings
from memctl.infra.settings_model import PROXY_PROOF

FILES = Path(__file__).parents[2] / "infra" / "deploy" / "proxy"
WHO, SECRET = "X-Auth-Request-Email", "c0ffee00c0ffee00c0ffee00"


class Gateway(http.server.BaseHTTPRequestHandler):
    """Answers as oauth2-proxy does at /oauth2/auth; whoever signed in without an address has none."""

    def do_GET(self) -> None:
        signed_in = "_oauth2_proxy=" in self.headers.get("Cookie", "")
        self.send_response(202 if signed_in and self.path.startswith("/oauth2/auth") else 401)
        if address := self.headers.get("Cookie", "").partition("_oauth2_proxy=")[2].partition(";")[0]:
            self.send_header(WHO, address)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    with remembered(postgres_server, migrated_template, vectors, embedded=False) as found:
        settings = load_settings(database_url=found.database_url)
        keys.make(settings, "dana@example.com", ("read", "write"), (), None)
        keys.make(settings, "guest@example.com", ("read",), (ATLAS,), None)
        yield found


class Front:
    """A proxy in front of memctl, as browsers meet it."""

    def __init__(self, port: int, tls: bool, api: Api) -> None:
        self.port, self.tls, self.api = port, tls, api

    def ask(
        self, path: str, *more: tuple[str, str], who: str | None = None, method: str = "GET", body: bytes = b""
    ) -> tuple[int, dict[str, str], str]:
        connection: HTTPConnection = HTTPConnection("localhost", self.port, timeout=30)
        if self.tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = HTTPSConnection("localhost", self.port, timeout=30, context=context)
        with contextlib.closing(connection):
            connection.putrequest(method, path)
            for name, value in (("Accept", "text/html"), *more):
                connection.putheader(name, value)
            if who is not None:
                connection.putheader("Cookie", f"_oauth2_proxy={who}")
            if method == "POST":
                connection.putheader("Content-Type", "application/x-www-form-urlencoded")
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read().decode()

    @property
    def origin(self) -> str:
        return f"{'https' if self.tls else 'http'}://localhost:{self.port}"


@pytest.fixture(params=["nginx", "caddy"])
def front(request: pytest.FixtureRequest, memory: Remembered, servers_folder: Path, tmp_path: Path) -> Iterator[Front]:
    port, tls = free_port(), request.param == "nginx"
    url = f"{'https' if tls else 'http'}://localhost:{port}"
    with contextlib.ExitStack() as stack:
        gateway = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
        thread = threading.Thread(target=gateway.serve_forever)
        thread.start()
        stack.callback(thread.join)
        stack.callback(gateway.shutdown)
        of = {"MEMCTL_API_URL": url, "MEMCTL_PROXY_HEADER": WHO, "MEMCTL_PROXY_SECRET": SECRET}
        first = "import logging, os; logging.basicConfig(level='INFO')\n"
        first += "os.environ['MEMCTL_API_LISTEN'] = os.environ['MEMCTL_API_URL'].split('//')[1]\n"
        first += f"os.environ.update({of!r})\n"
        api = stack.enter_context(serving(tmp_path, memory, embedder="none", first=first))
        where = make_folder(servers_folder / request.param)
        addresses = {"127.0.0.1:8080": f"127.0.0.1:{api.port}", "127.0.0.1:4180": f"127.0.0.1:{gateway.server_port}"}
        command = (_nginx if tls else _caddy)(where, port, addresses)
        stack.enter_context(proxy(command, where, lambda: connects(port)))
        yield Front(port, tls, api)


def _written(name: str, changes: dict[str, str]) -> str:
    text = (FILES / name).read_text(encoding="utf-8")
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return text


def _nginx(where: Path, port: int, addresses: dict[str, str]) -> list[str]:
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    subprocess.run(
        ["openssl", *made, "-subj", "/CN=localhost", "-keyout", where / "own.key", "-out", where / "own.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    for file in ("own.key", "own.pem"):
        os.chmod(where / file, 0o644)
    site = _written(
        "nginx.conf",
        {
            **addresses, "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "/etc/ssl/memory.example": str(where / "own"), "server_name memory.example": "server_name localhost",
            "PUT THE SECRET HERE": SECRET,
        },
    )  # fmt: skip
    paths = "".join(
        f"{each}_temp_path {where}/{each};\n" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (where / "whole.conf").write_text(
        f"daemon off;\npid {where}/pid;\nerror_log {where}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}{site}}}\n"
    )
    return [needed("nginx"), "-c", str(where / "whole.conf")]


def _caddy(where: Path, port: int, addresses: dict[str, str]) -> list[str]:
    changes = {**addresses, "memory.example {": f"http://localhost:{port} {{", "{$MEMCTL_PROXY_SECRET}": SECRET}
    (where / "Caddyfile").write_text("{\n\tadmin off\n}\n" + _written("Caddyfile", changes))
    own = [f"{each}={where}" for each in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")]
    return ["env", *own, needed("caddy"), "run", "--adapter", "caddyfile", "--config", str(where / "Caddyfile")]


def test_who_signed_in_at_the_proxy_has_the_rights_of_the_key_of_that_name(front: Front) -> None:
    status, headers, _ = front.ask("/")
    assert (status, urlsplit(headers["location"]).path) == (302, "/oauth2/sign_in")
    status, _, text = front.ask("/projects", who="Dana@example.com")
    assert (status, "dana@example.com</span>" in text, "ledger" in text) == (200, True, True)
    status, _, text = front.ask("/projects", who="guest@example.com")
    assert (status, "atlas" in text, "ledger" in text) == (200, True, False)
    status, _, text = front.ask("/", who="lee@example.com")
    assert (status, "no key in force is called so" in text) == (403, True)
    form = urlencode({"q": "TypeError"}).encode()
    posted = front.ask("/bugs", ("Origin", front.origin), who="dana@example.com", method="POST", body=form)
    assert posted[0] == 200
    foreign = front.ask("/bugs", ("Origin", "https://evil.example"), who="dana@example.com", method="POST", body=form)
    assert foreign[0] == 403


def test_what_a_client_sends_of_the_proxys_headers_goes_no_further(front: Front) -> None:
    smuggled = (WHO, "dana@example.com")
    for more in (
        (smuggled,), (smuggled, smuggled), (smuggled, (PROXY_PROOF, SECRET)), ((WHO.lower(), smuggled[1]),),
        ((WHO.replace("-", "_"), smuggled[1]),),
    ):  # fmt: skip
        assert front.ask("/", *more)[0] == 302
        status, _, text = front.ask("/projects", *more, who="guest@example.com")
        assert (status, "guest@example.com</span>" in text, "ledger" in text) == (200, True, False), more
        assert "dana" not in front.ask("/", *more, who="")[2], "who signed in without an address is nobody"
        assert front.ask("/v1/memories", *more, who="dana@example.com")[0] == 401
    assert front.ask("/v1/memories", ("Authorization", f"Bearer {TOKEN}"))[0] == 200
    assert SECRET not in front.api.log.read_text()


def test_who_reaches_memctl_past_the_proxy_is_nobody(front: Front) -> None:
    assert front.api.ask("/", headers={"Authorization": "", WHO: "dana@example.com"})[0] == 401
    assert "was ignored" in front.api.log.read_text()


def test_a_key_signs_in_through_the_proxy_as_before(front: Front) -> None:
    body = urlencode({"token": TOKEN}).encode()
    status, headers, _ = front.ask("/sign-in", ("Origin", front.origin), who="", method="POST", body=body)
    if front.tls:
        assert (status, "secure" in headers["set-cookie"].lower()) == (303, True)
    else:
        assert status == 200, "by plain HTTP at a name of loopback it leads to a name of its own"
