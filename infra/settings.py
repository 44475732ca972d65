"""What memctl is set to, and where each value came from.

In this order: flags, environment `MEMCTL_*`, the nearest `.memctl.toml` at or above the working directory, the user's
`config.toml`, the running instance (`memctl up`), defaults. The settings themselves stand in `settings_model`.
Importing this module is cheap; loading settings costs a quarter of a second of imports, so the hook path does not.
"""

from __future__ import annotations

import difflib
import logging
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl.domain.support.errors import MemctlError
from memctl.infra.files import of_a_stranger, opened, read_file
from memctl.infra.project_file import PROJECT_FILE, read_project_file

if TYPE_CHECKING:
    from pydantic import ValidationError

    from memctl.infra.settings_model import Settings

__all__ = ["Settings", "SettingsInvalid", "load_settings"]

log = logging.getLogger("memctl.settings")

_warned: deque[str] = deque(maxlen=32)
"""The warnings that this process gave last: none is given twice."""

_LONGEST_WHY = 500
"""Characters of a warning about a project's file, whose names anybody may have chosen."""

_LONGEST_FILE = 1 << 16
"""Bytes of the user's own file."""

_FLAG, _INSTANCE = "flag", "running instance"

Layer = tuple[str, dict[str, Any]]
"""Where values came from, in words, and the values as a tree of sections."""


class SettingsInvalid(MemctlError):
    """memctl's settings cannot be used: {problems}"""

    exit_code = 2

    def __init__(self, problems: list[str], hint: str | None = None) -> None:
        joined = problems[0] if len(problems) == 1 else "".join(f"\n- {problem}" for problem in problems)
        super().__init__(hint=hint, problems=joined)


def load_settings(**flags: object) -> Settings:
    """The settings in force here and now. A flag that is None counts as not given.

    Raises SettingsInvalid, naming the value, where it came from and what is allowed.
    """
    from pydantic import ValidationError

    from memctl.infra.settings_model import Settings

    layers = [
        (_FLAG, {name: value for name, value in flags.items() if value is not None}),
        _environment(),
        *_project(),
        *_user(),
    ]
    values, origins = _merged(layers)
    try:
        known = Settings.model_validate(values)
        data_dir = known.data_dir
        if known.api_token is None and (file := known.api_token_file) is not None:
            layers.append((str(file), {"api_token": read_token(file)}))
        values, origins = _merged([*layers, (_INSTANCE, _running_instance(data_dir))])
        return Settings.model_validate(values).from_origins(origins)
    except ValidationError as failure:
        raise SettingsInvalid(_messages_of(failure, origins, Settings)) from None


def read_token(file: Path) -> str:
    """The token in a file of ours that nobody else may read. Raises: SettingsInvalid."""
    import os
    import stat

    try:
        with opened(file) as secret:
            found = os.fstat(secret.fileno())
            if stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid not in (os.geteuid(), 0):
                raise SettingsInvalid([f"{file} may be read by others"], hint=f"chmod 600 {file}")
            token = secret.read(4096).decode().strip()
    except (OSError, ValueError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else "it is no text"
        raise SettingsInvalid([f"{file} cannot be read: {why}"]) from None
    if not token or any(character.isspace() for character in token):
        raise SettingsInvalid([f"{file} holds no token"])
    return token


def user_file() -> Path:
    """The user's own configuration; it need not exist."""
    import platformdirs

    return platformdirs.user_config_path("memctl", appauthor=False) / "config.toml"


def project_file() -> Path | None:
    """The nearest `.memctl.toml` at or above the working directory."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the working directory was deleted under us
        return None
    for folder in (here, *here.parents):
        if (file := folder / PROJECT_FILE).is_file() and not of_a_stranger(file):
            return file
    return None


_NO_SETTINGS = ("MEMCTL_OFF", "MEMCTL_LOG_FORMAT", "MEMCTL_PARENT_PID", "MEMCTL_TEST_")
"""How variables begin that are for something else."""


def _environment() -> Layer:
    import os

    from pydantic_settings import EnvSettingsSource, SettingsError

    from memctl.infra.settings_model import Settings

    names = {_variable(name) for name in Settings.model_fields}
    for name in os.environ:
        if name.startswith("MEMCTL_") and not name.startswith(_NO_SETTINGS) and name.split("__")[0] not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
            _say_once(f"{name} is set and does nothing: it is not a setting" + (f"; {near[0]} is" if near else ""))
    try:
        return "environment", EnvSettingsSource(Settings, env_ignore_empty=True)()
    except SettingsError as failure:
        raise SettingsInvalid([f"{failure} (from the environment)"]) from None


def _project() -> list[Layer]:
    """What the nearest project's file decides. It comes with a checkout, so a stranger's file stops nothing: what is no
    use, and what is not for a project to decide, is passed over with a warning."""
    file = project_file()
    if file is None:
        return []
    try:
        said = read_project_file(file)
    except (OSError, ValueError) as problem:
        _warn(file, f"it cannot be read: {problem.strerror if isinstance(problem, OSError) else problem}")
        return []
    values, unusable = _usable(said)
    if unusable:
        _warn(file, "; ".join(unusable))
    return [(str(file), values)]


def _usable(said: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What a project decides of that, and in words what is passed over."""
    from pydantic import ValidationError

    from memctl.infra.settings_model import PROJECT_MAY_SET, Settings

    values, unusable = dict[str, Any](), list[str]()
    for name in sorted(PROJECT_MAY_SET & said.keys()):
        try:
            Settings.model_validate({name: said[name]})
            values[name] = said[name]
        except ValidationError as failure:
            unusable.append(f"{name}: {failure.errors(include_url=False)[0]['msg']}")
    # A stranger's checkout must not decide where the user's words are sent.
    if refused := ", ".join(sorted(said.keys() - PROJECT_MAY_SET)):
        unusable.append(f"a project may not decide {refused}")
    return values, unusable


def _warn(file: Path, why: str) -> None:
    """Say what of a project's file is passed over."""
    why = why if len(why) <= _LONGEST_WHY else why[:_LONGEST_WHY] + "…"
    _say_once(f"{file} is passed over where memctl cannot use it: {why}")


def _say_once(message: str) -> None:
    """A warning, with nothing in it that could steer a terminal."""
    message = "".join(each if each.isprintable() else "�" for each in message)
    if message not in _warned:
        _warned.append(message)
        log.warning("%s", message)


def _user() -> list[Layer]:
    import tomllib

    file = user_file()
    try:
        data = read_file(file, _LONGEST_FILE + 1)
        if len(data) > _LONGEST_FILE:
            raise SettingsInvalid([f"{file} has more than {_LONGEST_FILE >> 10} KB"])
        return [(str(file), tomllib.loads(data.decode()))]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except RecursionError:
        raise SettingsInvalid([f"{file} cannot be read: it is nested too deeply"]) from None
    except (OSError, ValueError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else failure
        raise SettingsInvalid([f"{file} cannot be read: {why}"]) from None


def _running_instance(data_dir: Path) -> dict[str, Any]:
    from memctl.infra.data_dir import Folders
    from memctl.infra.endpoints import read_endpoints

    return {**read_endpoints(Folders(data_dir))}


def _merged(layers: list[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """One tree of values, the first layer that has one deciding; and by dotted name the layer that did."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}

    def lay(under: dict[str, Any], over: dict[str, Any], origin: str, prefix: str) -> None:
        for name, value in over.items():
            if isinstance(value, dict) and isinstance(under.setdefault(name, {}), dict):
                lay(under[name], value, origin, f"{prefix}{name}.")
            elif name not in under:
                under[name] = value
                origins[prefix + name] = f"{origin} {_variable(prefix + name)}" if origin == "environment" else origin

    for origin, tree in layers:
        lay(values, tree, origin, "")
    return values, origins


def _variable(name: str) -> str:
    return "MEMCTL_" + name.replace(".", "__").upper()


def _messages_of(failure: ValidationError, origins: dict[str, str], model: type[Settings]) -> list[str]:
    """Each problem in words, with the place to mend it."""
    problems = []
    for error in failure.errors(include_url=False):
        name = ".".join(str(part) for part in error["loc"])
        origin = origins.get(name, "default")
        if error["type"] == "extra_forbidden":
            near = difflib.get_close_matches(name, model.model_fields, n=1)
            problems.append(f"{name} ({origin}) is not a setting" + (f"; {near[0]} is" if near else ""))
        else:
            # Not the value itself: it may be a password.
            said = error["msg"].removeprefix("Value error, ")
            problems.append(f"{name} ({origin}): {said}" if name else said)
    return problems


def __getattr__(name: str) -> Any:
    if name == "Settings":
        from memctl.infra.settings_model import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
