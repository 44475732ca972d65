"""Secrets, and what is none, by the structure that joins a name to its value. All values are made up."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from secret_forms import Maker


class Placed(NamedTuple):
    """One text of a structure."""

    structure: str
    text: str
    value: str
    """What may not be left of it, or, where it is no secret, has to be."""


def _cases(name: str) -> dict[str, str]:
    words = name.split("_")
    return {
        "ENV": name.upper(),
        "snake": name,
        "kebab": "-".join(words),
        "camel": words[0] + "".join(map(str.title, words[1:])),
        "Pascal": "".join(map(str.title, words)),
        "dotted": ".".join(words),
        "Human": " ".join([words[0].title(), *words[1:]]),
    }


# ruff: noqa: E501
PAIRS = {
    "kubernetes-yaml": "spec:\n  containers:\n  - name: app\n    env:\n    - name: «ENV»\n      value: @@\n    - name: PORT\n      value: '80'\n",
    "kubernetes-yaml-quoted": "        env:\n          - name: LOG\n            value: info\n          - name: \"«ENV»\"\n            value: \"@@\"\n",
    "kubernetes-json": '"env": [\n  {\n    "name": "«ENV»",\n    "value": "@@"\n  }\n]',
    "kubernetes-flow": "env: [{name: «ENV», value: @@}, {name: PORT, value: 80}]",
    "json-key-value": '{"Key": "«Pascal»", "Value": "@@"}',
    "json-value-first": '{"value": "@@", "name": "«ENV»"}',
    "json-between": '{"name": "«snake»", "type": "string", "enabled": true, "value": "@@"}',
    "json-packed": '[{"id":7,"key":"«camel»","value":"@@"},{"id":8,"key":"port","value":"80"}]',
    "json-escaped": '{"body": "{\\"name\\": \\"«ENV»\\", \\"value\\": \\"@@\\"}"}',
    "cloudformation-json": '[{"ParameterKey": "«Pascal»", "ParameterValue": "@@"}]',
    "cloudformation-flag": "aws cloudformation deploy --parameters ParameterKey=«Pascal»,ParameterValue=@@ --stack-name shop",
    "cloudformation-yaml": "Parameters:\n  - ParameterKey: «Pascal»\n    ParameterValue: @@\n",
    "plist": "<dict>\n\t<key>«camel»</key>\n\t<string>@@</string>\n</dict>",
    "xml-add": '<appSettings>\n  <add key="«Pascal»" value="@@"/>\n</appSettings>',
    "xml-property": '<bean>\n  <property name="«camel»" value="@@" />\n</bean>',
    "xml-nested": "<property>\n  <name>fs.«dotted»</name>\n  <value>@@</value>\n</property>",
    "xml-entry": '<entry key="app.«dotted»">@@</entry>',
    "xml-setting": '<setting name="«Pascal»" serializeAs="String">\n  <value>@@</value>\n</setting>',
    "properties": "app.url=http://shop\napp.«dotted»=@@\napp.port=80\n",
    "properties-space": "app.url http://shop\napp.«dotted» @@\n",
    "gradle-field": 'buildConfigField "String", "«ENV»", "\\"@@\\""',
    "gradle-call": "signing {\n    «camel» '@@'\n}",
    "triple-quoted": '«ENV» = """@@"""\nDEBUG = True\n',
    "triple-quoted-lines": "«ENV» = '''\n@@\n'''\n",
    "docker-env": "FROM alpine\nENV «ENV» @@\nRUN make\n",
    "docker-arg": "ARG «ENV»=@@\nRUN make\n",
    "python-default": 'X = os.getenv("«ENV»", "@@")',
    "python-environ-default": "X = os.environ.get('«ENV»', '@@')",
    "js-default": 'const x = process.env.«ENV» || "@@";',
    "js-nullish": "const x = process.env['«ENV»'] ?? '@@'",
    "ruby-default": 'x = ENV.fetch("«ENV»") { "@@" }',
    "rust-default": 'let x = env::var("«ENV»").unwrap_or("@@".to_string());',
    "shell-default": 'x="${«ENV»:-@@}"',
    "shell-set": ": ${«ENV»:=@@}",
    "fish": "set -gx «ENV» @@",
    "setx": 'setx «ENV» "@@"',
    "yaml-literal": "config:\n  «snake»: |\n    @@\n  port: 80\n",
    "yaml-folded": "config:\n  «camel»: >-\n    @@\n  port: 80\n",
    "markdown-column": "| User | «Human» | Host |\n|------|------|------|\n| dana | @@ | db1 |\n",
    "markdown-row": "| Setting | Value |\n|---|---|\n| Port | 80 |\n| «Human» | `@@` |\n",
    "sql-column": " id | login | «snake»  | seen\n----+-------+--------+-----\n  1 | dana  | @@ | 2026-01-02\n(1 row)\n",
    "box-row": "+----------+------+\n| name     | v    |\n+----------+------+\n| «snake»  | @@ |\n+----------+------+\n",
    "unicode-box": "┌──────┬──────┐\n│ «Human» │ @@ │\n└──────┴──────┘\n",
    "columns-by-space": "NAME             VALUE\nPORT             80\n«ENV»      @@\n",
    "csv-column": "login,«snake»,city\ndana,@@,Bonn\n",
    "csv-quoted": '"login","«Human»","city"\n"erik","x","Ulm"\n"dana","@@","Bonn"\n',
    "tsv-column": "login\t«snake»\tcity\ndana\t@@\tBonn\n",
    "csv-row": "port,80\n«snake»,@@\n",
    "flag-next-line": "deploy \\\n  --region eu \\\n  --«kebab» \\\n  @@ \\\n  --yes\n",
    "flag-list": 'args: ["--user", "dana", "--«kebab»", "@@"]',
    "flag-yaml-list": "command:\n  - deploy\n  - --«kebab»\n  - @@\n",
    "php-define": "define('«ENV»', '@@');",
    "php-array": "return [\n    '«snake»' => '@@',\n];",
    "tfvars": 'region = "eu"\n«snake»      = "@@"\n',
    "terraform-default": 'variable "«snake»" {\n  type    = string\n  default = "@@"\n}\n',
    "terraform-set": 'set {\n  name  = "auth.«camel»"\n  value = "@@"\n}\n',
    "url-query": "GET https://acme.dev/v2/items?limit=5&«snake»=@@&page=2",
    "url-query-coded": "https://acme.dev/go?next=%2Fitems%3F«snake»%3D@@",
    "connection": "Server=db1;Database=shop;Uid=app;Pwd=@@;«Pascal»=@@;",
    "go-struct": '{Name: "«ENV»", Value: "@@"},',
    "ruby-hash": '{ :name => "«snake»", :value => "@@" }',
    "har": '"headers": [{"name": "X-«kebab»", "value": "@@"}]',
    "html-input": '<input type="hidden" name="«snake»" value="@@">',
    "multipart": 'Content-Disposition: form-data; name="«snake»"\r\n\r\n@@\r\n--b1\r\n',
    "sql-insert-pair": "INSERT INTO settings (name, value) VALUES ('«snake»', '@@');",
    "sql-insert-column": "INSERT INTO accounts (login, «snake») VALUES ('dana', '@@');",
    "sql-set": "UPDATE settings SET value = '@@' WHERE name = '«snake»';",
    "clojure": '{:«kebab» "@@" :port 80}',
    "c-define": '#define «ENV» "@@"',
    "android-string": '<string name="«snake»">@@</string>',
    "toml-pair": '[[env]]\nname = "«ENV»"\nvalue = "@@"\n',
    "definition-lines": "«Human»:\n    @@\nHost:\n    db1\n",
    "quoted-line-below": "**«Human»**\n```\n@@\n```\n",
    "prompted": "$ acme configure\nAcme «Human» [None]: @@\nDefault region name [None]: eu\n",
}  # fmt: skip
"""What joins a name to its value: «…» is the name, @@ the value."""

NAMES = (
    "db_password", "api_key", "auth_token", "client_secret", "smtp_password", "access_token", "admin_password",
    "signing_secret",
)  # fmt: skip

PUBLIC = (
    ("password_min_length", "12"), ("password_policy", "min8-upper1-digit1"), ("token_url", "https://acme.dev/oauth2/token"),
    ("password_file", "/run/secrets/db_password_v2"), ("api_key_header", "X-Api-Key-V2"), ("token_ttl", "3600s"),
    ("secret_name", "shop-db-credentials-v2"), ("git_commit", "9f8e7d6c5b4a39281706f5e4d3c2b1a097531864"),
    ("request_id", "018427c2-6807-4b10-b33b-3bfc78dd5c73"), ("image_tag", "v1.24.3-rc2"), ("db_host", "db-01.acme.internal"),
    ("cache_key", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"), ("password", "Passwort"), ("password", "Mindestens8Zeichen"),
    ("api_key", "your-api-key-1234"), ("db_password", "${DB_PASSWORD}"), ("api_key", "changeme123"),
    ("max_tokens", "128000"), ("token_type", "Bearer"), ("auth_mode", "oauth2-pkce"), ("password", "string"),
    ("public_key", "q7Wm2Zr9Lk4Tn8Vb3Xc6Pd5H"), ("client_secret", "<client-secret>"), ("token", "null"),
    ("next_page_token", "q7Wm2Zr9Lk4Tn8Vb3Xc6Pd5H"), ("password", "required"), ("access_key", "example_key_1234"),
    ("image_digest", "sha256-9f8e7d6c5b4a39281706f5e4d3c2b1a0"), ("token_count", "18234"), ("password_reset", "2026-03-04"),
)  # fmt: skip
"""Names and values that are no secret."""


def _filled(template: str, name: str, value: str) -> str:
    for case, written in _cases(name).items():
        template = template.replace(f"«{case}»", written)
    return template.replace("@@", value)


def built_on(structure: str) -> bool:
    """Whether rules may be written with a look at it. The others are only counted."""
    return zlib.crc32(structure.encode()) % 2 == 0


def hidden(placed: Placed, left: str) -> bool:
    """Whether a text holds its secret no more; of a dump, a line in four may show what stands around it."""
    lines = placed.value.split("\n")
    return sum(line in left for line in lines) <= (len(lines) - 1) // 4


def secrets() -> Iterator[Placed]:
    """Each structure with names and values in turn, and those that are no pairs."""
    maker = Maker(51)
    drawn = (maker.password, maker.mixed, lambda: maker.hex(40), lambda: maker.mixed(32))
    for n, (structure, template) in enumerate(PAIRS.items()):
        for k in range(4):
            name = NAMES[(n + k) % len(NAMES)]
            value = maker.password() if name.endswith("password") else drawn[1 + (n + k) % 3]()
            value = value.replace("%", "!").replace("#", "!") if "url" in structure else value
            yield Placed(structure, _filled(template, name, value), value)
    yield from _others(maker)


def _others(maker: Maker) -> Iterator[Placed]:
    for _ in range(3):
        for structure, template in {
            "netrc": "machine api.acme.dev\n\tlogin dana\n\tpassword @@\n",
            "pgpass": "db1.acme.dev:5432:shop:dana:@@\n",
            "aws-configure": "AWS Access Key ID [None]: x\nAWS Secret Access Key [None]: @@\nDefault region name [None]:\n",
            "authorization-digest": 'Authorization: Digest username="dana", nonce="x", response="@@", opaque="y"',
            "cookie": "Cookie: lang=en; sessionid=@@; theme=dark",
            "set-cookie": "< Set-Cookie: sid=@@; Path=/; HttpOnly",
            "connection-pwd": "Data Source=db1;Initial Catalog=shop;User ID=sa;Pwd=@@;Encrypt=True",
            "mailchimp": "mc = Client('@@-us12')",
            "mapbox": "mapboxgl.setup('@@')",
            "htpasswd": "dana:@@\n",
            "authorization-basic": "> Authorization: Basic @@\n",
        }.items():
            if structure in ("authorization-digest", "mailchimp"):
                value = maker.hex(32)
            elif structure == "aws-configure":
                value = maker.base64(30)
            elif structure in ("cookie", "set-cookie"):
                value = maker.mixed(32)
            elif structure == "mapbox":
                value = "pk.eyJ" + maker.mixed(60) + "." + maker.mixed(22)
            elif structure == "htpasswd":
                value = "$apr1$" + maker.mixed(8) + "$" + maker.mixed(22)
            elif structure == "authorization-basic":
                value = base64.b64encode(f"dana:{maker.password()}".encode()).decode()
            else:
                value = maker.password()
            yield Placed(structure, template.replace("@@", value), value)
        secret = f"DB_PASSWORD={maker.password()}\nAPI_TOKEN={maker.mixed(32)}\nPORT=80\n".encode()
        for structure, dump in DUMPS.items():
            lines = dump(secret)
            yield Placed(structure, f"$ {structure} .env\n{lines}\n", lines)


def _rows(data: bytes) -> Iterator[tuple[int, bytes]]:
    return ((at, data[at : at + 16]) for at in range(0, len(data), 16))


def _shown(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def _xxd(data: bytes) -> str:
    pairs = ((at, row, " ".join(row[n : n + 2].hex() for n in range(0, len(row), 2))) for at, row in _rows(data))
    return "\n".join(f"{at:08x}: {shown:<39}  {_shown(row)}" for at, row, shown in pairs)


def _hexdump(data: bytes) -> str:
    halves = ((at, row, f"{row[:8].hex(' ')}  {row[8:].hex(' ')}") for at, row in _rows(data))
    return "\n".join(f"{at:08x}  {shown:<48}  |{_shown(row)}|" for at, row, shown in halves)


def _od_x(data: bytes) -> str:
    return "\n".join(f"{at:07o} {row.hex(' ')}" for at, row in _rows(data))


def _od_c(data: bytes) -> str:
    def each(byte: int) -> str:
        return r"\n" if byte == 10 else chr(byte)

    return "\n".join(f"{at:07o}" + "".join(f"{each(byte):>4}" for byte in row) for at, row in _rows(data))


def _words(data: bytes) -> str:
    """Pairs of bytes as a little-endian machine shows them."""
    return "\n".join(
        f"{at:07x} " + " ".join(row[n : n + 2][::-1].hex().rjust(4, "0") for n in range(0, len(row), 2))
        for at, row in _rows(data)
    )


DUMPS = {"xxd": _xxd, "hexdump -C": _hexdump, "od -t x1": _od_x, "od -c": _od_c, "hexdump": _words}


def public() -> Iterator[Placed]:
    """What is no secret, in the same structures."""
    for structure, template in PAIRS.items():
        for name, value in PUBLIC if structure != "connection" else ():  # its `Pwd=` promises one
            yield Placed(structure, _filled(template, name, value), value)
    harmless = b'#!/bin/sh\n# count the words of a file\nset -e\nwc -w "$1" | sort -n\nexit 0\n'
    for structure, dump in DUMPS.items():
        yield Placed(structure, dump(harmless), dump(harmless))
