"""Who signed in to a proxy in front looks with the rights of the key of that name; nobody else does by its header."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from apis import TOKEN, Api, serving
from asked import ATLAS, Remembered
from waiting import until

from memctl.api.http.access import is_page, rules
from memctl.api.viewer.sign_in import COOKIE, Browsers
from memctl.api.write import keys
from memctl.infra.api_keys import SCOPES, Scope
from memctl.infra.settings import SettingsInvalid, load_settings
from memctl.infra.settings_model import PROXY_PROOF

WHO, SECRET = "X-Auth-Request-Email", "b7c1d9e0f3a24586b7c1d9e0"
PROOF = (PROXY_PROOF, SECRET)
SETTINGS = {"MEMCTL_PROXY_HEADER": WHO, "MEMCTL_PROXY_SECRET": SECRET}
FIRST = f"import logging, os; logging.basicConfig(level='INFO'); os.environ.update({SETTINGS!r})\n"
BROWSER = ("Accept", "text/html")
FORM = ("Content-Type", "application/x-www-form-urlencoded")
DANA = "dana@example.com"
SEARCH = "/search?q=Decimal+float"

Pair = tuple[str, str | bytes]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


def asked(port: int, path: str, *headers: Pair, method: str = "GET", body: bytes = b"") -> Answer:
    """What a request with exactly these headers gets, one more than once where it stands so here."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.putrequest(method, path)
        for name, value in headers:
            connection.putheader(name, value)
        if method == "POST":
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read().decode())


@pytest.fixture(scope="module")
def api(memory: Remembered, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("proxied"), memory, embedder="none", first=FIRST) as found:
        key(found, DANA)
        yield found


def key(api: Api, name: str, *projects: str, scopes: Iterable[Scope] = ("read", "write")) -> str:
    """Make a key of that name; returns its id."""
    settings = load_settings(database_url=api.environment["MEMCTL_DATABASE_URL"])
    return keys.make(settings, name, tuple(scopes), projects, None)[0].id


def revoke(api: Api, id: str) -> None:
    keys.revoke(load_settings(database_url=api.environment["MEMCTL_DATABASE_URL"]), id)


def look(api: Api, who: str | bytes, path: str = "/", *more: Pair) -> Answer:
    """What somebody sees who comes through the proxy."""
    return asked(api.port, path, BROWSER, PROOF, (WHO, who), *more)


def send(api: Api, who: str, path: str, *more: Pair, **form: str) -> Answer:
    headers = (BROWSER, FORM, PROOF, (WHO, who), *more)
    return asked(api.port, path, *headers, method="POST", body=urlencode(form).encode())


def own(api: Api) -> Pair:
    return "Origin", api.url


def test_who_the_proxy_names_is_shown_the_viewer_as_the_member_of_that_key(api: Api) -> None:
    seen = look(api, DANA)
    assert seen.status == 200
    assert f'<span class="meta">{DANA}</span>' in seen.text
    assert "set-cookie" not in seen.headers, "the proxy sends the name with each request, and may stop"
    assert "ledger" in look(api, DANA, "/projects").text
    assert look(api, DANA, "/waiting").status == 403, "that is the owner's"
    until(lambda: f"key {key_id(api)}: GET / 200" in api.log.read_text(), "the line of who asked")


def key_id(api: Api) -> str:
    settings = load_settings(database_url=api.environment["MEMCTL_DATABASE_URL"])
    return next(each.id for each in keys.listed(settings) if each.name == DANA)


@pytest.mark.parametrize(
    "proof",
    [
        (), ((PROXY_PROOF, ""),), ((PROXY_PROOF, SECRET[:-1]),), ((PROXY_PROOF, f"{SECRET}0"),),
        ((PROXY_PROOF, SECRET.upper()),), (PROOF, PROOF), ((PROXY_PROOF, "x"), PROOF), (PROOF, (PROXY_PROOF, "x")),
        (("X-Forwarded-For", "127.0.0.1"),), (("Authorization", f"Bearer {SECRET}"),),
    ],
)  # fmt: skip
def test_the_header_alone_opens_nothing(api: Api, proof: tuple[Pair, ...]) -> None:
    led = asked(api.port, "/", BROWSER, (WHO, DANA), *proof)
    assert (led.status, led.headers.get("location"), led.text) == (303, "/sign-in", "")
    assert asked(api.port, "/", (WHO, DANA), *proof).status == 401


def test_headers_that_nobody_vouched_for_are_counted_in_one_line_without_what_they_said(
    memory: Remembered, tmp_path: Path
) -> None:
    with serving(tmp_path, memory, embedder="none", first=FIRST) as api:
        for path in ("/", "/v1/memories", "/", "/sign-in"):
            asked(api.port, path, (WHO, "mallory@example.com"), (PROXY_PROOF, "guess-of-mallory"))
        log = api.log.read_text()
    (line,) = (each for each in log.splitlines() if WHO in each)
    assert "without the proxy's secret was ignored (1 so far)" in line
    assert not {each for each in ("mallory", "guess", SECRET) if each in log}


def test_without_the_setting_the_header_is_no_header_of_ours(memory: Remembered, tmp_path: Path) -> None:
    with serving(tmp_path, memory, embedder="none") as api:
        assert look(api, DANA).status == 303
        assert WHO not in api.log.read_text()


def test_who_has_no_key_reads_who_makes_one(api: Api) -> None:
    seen = look(api, "<b>lee</b>@example.com")
    assert (seen.status, seen.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert "default-src 'none'; style-src 'self'" in seen.headers["content-security-policy"]
    assert "&lt;b&gt;lee&lt;/b&gt;@example.com" in seen.text
    assert "no key in force is called so" in seen.text
    assert "Ask whoever runs this memctl" in seen.text
    assert "<code>memctl keys add NAME</code>" in seen.text
    refused = asked(api.port, "/", PROOF, (WHO, "lee@example.com"))
    assert (refused.status, refused.headers["content-type"]) == (403, "application/problem+json")
    assert "no key in force" in json.loads(refused.text)["detail"]


def test_a_revoked_key_signs_nobody_in(api: Api) -> None:
    made = key(api, "kim@example.com")
    until(lambda: look(api, "kim@example.com").status == 200, "the key")
    revoke(api, made)
    until(lambda: look(api, "kim@example.com").status == 403, "the refusal")


def test_a_key_for_a_project_shows_that_project_alone(api: Api) -> None:
    key(api, "guest@example.com", ATLAS)
    until(lambda: look(api, "guest@example.com").status == 200, "the key")
    waiting, found = ["/", SEARCH], dict[str, str]()
    while waiting and len(found) < 60:
        path = waiting.pop(0)
        if path not in found:
            seen = look(api, "guest@example.com", path)
            assert seen.status == 200, path
            found[path] = seen.text
            links = re.findall(r'href="(/[^"]*)"', seen.text)
            waiting += [link.replace("&amp;", "&").partition("#")[0] for link in links]
    assert "atlas" in found["/projects"]
    assert "ledger" in look(api, DANA, SEARCH).text
    assert not {word for word in ("invoice", "ledger") if word in "".join(found.values())}
    assert look(api, "guest@example.com", "/engine").status == 403


def test_a_key_does_there_what_its_scopes_say(api: Api) -> None:
    key(api, "reader@example.com", scopes=("read",))
    key(api, "sender@example.com", scopes=("ingest",))
    until(lambda: look(api, "reader@example.com").status == 200, "the key")
    pin = {"do": "pin", "id": "no-such"}
    assert "no scope write" in send(api, "reader@example.com", "/things", own(api), **pin).text
    assert "no scope write" not in send(api, DANA, "/things", own(api), **pin).text
    seen = look(api, "sender@example.com")
    assert (seen.status, "no scope read" in seen.text) == (403, True)


@pytest.mark.parametrize(
    "sent",
    [
        ((WHO, DANA), (WHO, DANA)), ((WHO, DANA), (WHO.lower(), "lee@example.com")), ((WHO, ""),), ((WHO, "   "),),
        ((WHO, "da\x01na"),), ((WHO, b"dana\xc2\x9b"),), ((WHO, "dana\u202e".encode()),), ((WHO, b"dana\xff"),),
        ((WHO, "d" * 201),),
    ],
)  # fmt: skip
def test_a_header_that_names_nobody_is_refused(api: Api, sent: tuple[Pair, ...]) -> None:
    seen = asked(api.port, "/", BROWSER, PROOF, *sent)
    assert (seen.status, "names nobody" in seen.text) == (400, True)


def test_a_name_is_the_whole_of_it_and_ascii_letters_alone_are_folded(api: Api) -> None:
    key(api, "Mark.Kent@Example.com")
    until(lambda: look(api, "mark.kent@example.COM").status == 200, "the key")
    for other in (
        "mark.kent", "mark.kent@example.com.evil.example", "xmark.kent@example.com", "mark.kent@example.com,lee",
        "mar\u212a.\u212aent@example.com", "owner", TOKEN, key_id(api),
    ):  # fmt: skip
        assert look(api, other.encode()).status == 403, other
    assert key(api, "홍길동")
    until(lambda: look(api, "홍길동".encode()).status == 200, "a name that is not of ASCII")
    assert look(api, ("d" * 200)).status == 403, "a name may be as long, and is nobody's"


def test_several_keys_of_one_name_sign_nobody_in(api: Api) -> None:
    key(api, "twin", ATLAS)
    until(lambda: look(api, "twin").status == 200, "the first")
    second = key(api, "TWIN")
    until(lambda: look(api, "twin").status == 403, "the second")
    assert "several keys in force are called so" in look(api, "twin").text
    revoke(api, second)
    until(lambda: look(api, "twin").status == 200, "the first again")


def test_what_programs_ask_takes_a_key_all_the_same(api: Api) -> None:
    key(api, "operator", scopes=SCOPES)
    until(lambda: look(api, "operator").status == 200, "the key")
    programs = [(method, path) for method, path in rules() if not is_page(path) and rules()[method, path].scopes]
    assert {path.split("/")[1] for _, path in programs} == {"v1", "mcp", "metrics"}
    for method, path in (*programs, ("GET", "/v1"), ("GET", "/v1/nothing")):
        seen = asked(api.port, path, PROOF, (WHO, "operator"), own(api), method=method)
        assert seen.status == 401, (method, path)
    assert asked(api.port, "/v1/caller", PROOF, (WHO, DANA), ("Authorization", f"Bearer {TOKEN}")).status == 200
    assert asked(api.port, "/healthz", PROOF, (WHO, "")).status == 200, "a probe names nobody"


def test_no_page_of_others_does_anything_with_what_the_proxy_vouches_for(api: Api) -> None:
    asking = {"q": "TypeError"}
    assert send(api, DANA, "/bugs", own(api), **asking).status == 200
    assert send(api, DANA, "/bugs", **asking).status == 303, "no Origin: led to the door, and nothing done"
    for origin in ("https://evil.example", "null", api.url.replace("http:", "https:") + "0"):
        assert send(api, DANA, "/bugs", ("Origin", origin), **asking).status == 403
    for site in ("cross-site", "same-site"):
        loaded = (("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "no-cors"))
        assert look(api, DANA, "/search?q=x", *loaded).status == 303
        assert look(api, DANA, "/", ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate")).status == 200
    assert look(api, DANA, "/", ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors")).status == 200


def test_no_other_host_is_answered(api: Api) -> None:
    connection = HTTPConnection("127.0.0.1", api.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/", headers={"Host": "evil.example", PROXY_PROOF: SECRET, WHO: DANA})
        assert connection.getresponse().status == 403


def test_the_proxy_decides_over_a_cookie_and_signs_out_itself(api: Api) -> None:
    owners = Browsers(TOKEN)
    cookie = ("Cookie", f"{COOKIE}={owners.by_ticket(owners._ticket(''))}")
    assert asked(api.port, "/waiting", BROWSER, cookie).status == 200, "the owner's cookie by itself"
    assert look(api, DANA, "/waiting", cookie).status == 403
    assert look(api, "nobody", "/", cookie).status == 403
    left = send(api, DANA, "/sign-out", own(api), cookie)
    assert (left.status, "Sign out there" in left.text) == (200, True)
    assert asked(api.port, "/", BROWSER, cookie).status == 303, "the cookie is good for nothing more"


@pytest.mark.parametrize(
    ("name", "secret"), [(WHO, None), (WHO, ""), (WHO, "x" * 23), (PROXY_PROOF.lower(), "x" * 24), ("X Y", "x" * 24)]
)
def test_nothing_starts_where_the_header_would_prove_nothing(
    name: str, secret: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_PROXY_HEADER", name)
    if secret is not None:
        monkeypatch.setenv("MEMCTL_PROXY_SECRET", secret)
    with pytest.raises(SettingsInvalid) as why:
        load_settings()
    assert "proxy_" in str(why.value)
    assert "xxx" not in str(why.value)


def test_no_checkout_names_a_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".memctl.toml").write_text(f'proxy_header = "{WHO}"\nproxy_secret = "{SECRET}"\n')
    monkeypatch.chdir(tmp_path)
    found = load_settings()
    assert (found.proxy_header, found.proxy_secret) == ("", None)
    assert "a project may not decide proxy_header, proxy_secret" in caplog.text
    for variable, value in SETTINGS.items():
        monkeypatch.setenv(variable, value)
    found = load_settings()
    assert found.proxy_header == WHO
    assert SECRET not in f"{found!r}{found.model_dump_json()}"
