"""Where memory is off: everywhere, a session, a project; for saving, recall or both."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.support.location import normalise
from memctl.infra import hook
from memctl.infra.hooks.capture_policy import BOTH, FRESH_S, CapturePolicy, OffUnreadable, What, read_off, switch
from memctl.infra.settings import load_settings
from memctl.infra.settings_model import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


def test_where_nothing_was_switched_off_nothing_is(settings: Settings) -> None:
    assert not CapturePolicy(settings).off("save", "s1", "/w/shop")


def test_a_session_is_off_for_what_was_named_and_on_again(settings: Settings) -> None:
    switch(settings.data_dir, False, ["save"], session="s1")
    silence = CapturePolicy(settings)
    assert silence.off("save", "s1", "/w")
    assert not silence.off("recall", "s1", "/w")
    assert not silence.off("save", "s2", "/w")
    assert switch(settings.data_dir, True, session="s1").sessions == {}
    assert not CapturePolicy(settings).off("save", "s1", "/w")


def test_a_project_is_off_with_all_that_lies_below_it(settings: Settings) -> None:
    switch(settings.data_dir, False, project="/w/shop/")
    silence = CapturePolicy(settings)
    assert silence.off("save", "s", "/w/shop")
    assert silence.off("recall", "s", "/w/shop/api/v2")
    assert not silence.off("save", "s", "/w/shopping")
    assert not silence.off("save", "s", "/w")


def test_everything_is_off_and_on(settings: Settings) -> None:
    switch(settings.data_dir, False)
    assert CapturePolicy(settings).off("recall", "", "")
    switch(settings.data_dir, True, ["recall"])
    assert not CapturePolicy(settings).off("recall", "", "")
    assert CapturePolicy(settings).off("save", "", "")


def test_a_projects_own_file_speaks_for_what_lies_below_it(settings: Settings, tmp_path: Path) -> None:
    inner = tmp_path / "shop" / "api"
    inner.mkdir(parents=True)
    (tmp_path / "shop" / ".memctl.toml").write_text("save = false\n")
    silence = CapturePolicy(settings)
    assert silence.off("save", "s", str(inner))
    assert not silence.off("recall", "s", str(inner))
    assert not silence.off("save", "s", str(tmp_path))


@pytest.mark.parametrize("text", ["save = ", "save = 0", "[save]\n", "\xff"])
def test_a_projects_file_that_says_nothing_of_sense_switches_nothing_off(
    text: str, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / ".memctl.toml").write_text(text)
    assert not CapturePolicy(settings).off("save", "s", str(tmp_path))


HOSTILE = {
    "one key of many names": "a." * 32_000 + "b = 1\n",
    "names in a list": "x = [" + "{" + "a." * 16_000 + "b = 1}]\n",
    "quoted names": '"\\"".' * 10_000 + "b = 1\n",
    "lists in lists": "x = " + "[" * 30_000,
    "tables in tables": "x = " + "{y=" * 20_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_projects_file_that_somebody_else_wrote_holds_nobody_up(
    text: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".memctl.toml").write_text(f"save = false\n{text}")
    began = time.process_time()
    assert not CapturePolicy(settings).off("save", "s", str(tmp_path))
    assert time.process_time() - began < 0.2
    monkeypatch.chdir(tmp_path)
    assert load_settings().save
    assert "cannot be read" in caplog.text


def test_a_projects_file_is_read_again_only_where_it_changed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    folder = tmp_path
    for level in range(60):
        folder /= f"d{level}"
        folder.mkdir()
        (folder / ".memctl.toml").write_text("x = [" + "1," * 4_000 + "]\n")

    def seconds(silence: CapturePolicy) -> float:
        began = time.process_time()
        assert not silence.off("save", "s", str(folder))
        return time.process_time() - began

    silence = CapturePolicy(settings)
    first = seconds(silence)
    now[0] += FRESH_S + 1
    assert seconds(silence) < first / 4
    (folder / ".memctl.toml").write_text("save = false\n")
    now[0] += FRESH_S + 1
    assert silence.off("save", "s", str(folder))


def test_the_file_of_a_project_in_which_the_service_was_started_is_not_everybodys(tmp_path: Path) -> None:
    given = Settings(data_dir=tmp_path, save=False)
    assert CapturePolicy(given.from_origins({"save": str(tmp_path / "config.toml")})).off("save", "s", "/elsewhere")
    assert not CapturePolicy(given.from_origins({"save": "/shop/.memctl.toml"})).off("save", "s", "/elsewhere")


def test_a_list_that_cannot_be_read_keeps_everything_off_and_is_told(settings: Settings) -> None:
    settings.data_dir.mkdir()
    (settings.data_dir / "off.json").write_text("{")
    assert CapturePolicy(settings).off("save", "s", "/w")
    with pytest.raises(OffUnreadable):
        read_off(settings.data_dir)


def test_a_switch_is_seen_by_a_process_that_runs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("memctl.infra.hooks.capture_policy.time.monotonic", lambda: now[0])
    silence = CapturePolicy(settings)
    assert not silence.off("save", "s", "/w")
    switch(settings.data_dir, False)
    now[0] += FRESH_S + 1
    assert silence.off("save", "s", "/w")


def test_when_saving_was_off_is_known_once_it_is_on_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10]
    monkeypatch.setattr("memctl.infra.hooks.capture_policy.time.time_ns", lambda: now[0] * 1000)
    for on, at in ((False, 10), (False, 15), (True, 20), (True, 30)):
        for where in ({}, {"session": "s"}, {"project": "/w/shop"}):
            now[0] = at + (100 if "session" in where else 200 if where else 0)
            switch(settings.data_dir, on, **where)
    switch(settings.data_dir, False, ["recall"], session="t")
    switch(settings.data_dir, True, session="t")
    silence = CapturePolicy(settings)
    assert not silence.off("save", "s", "/w/shop")
    everywhere, session, project = ("x", "/y"), ("s", "/y"), ("x", "/w/shop/api")
    assert [at for at in range(400) if silence.saving_was_off(*everywhere, at)] == list(range(10, 20))
    assert [at for at in range(20, 400) if silence.saving_was_off(*session, at)] == list(range(110, 120))
    assert [at for at in range(20, 400) if silence.saving_was_off(*project, at)] == list(range(210, 220))


def test_what_was_said_before_saving_went_off_is_heard(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100]
    monkeypatch.setattr("memctl.infra.hooks.capture_policy.time.time_ns", lambda: now[0] * 1000)
    for where in ({"session": "s"}, {"project": "/w/shop"}, {}):
        switch(settings.data_dir, False, **where)
        switch(settings.data_dir, False, **where)  # it is as long off as it was
        now[0] += 100
    silence = CapturePolicy(settings)
    for session, place, since in (("s", "/y", 100), ("x", "/w/shop/api", 200), ("x", "/y", 300), ("s", "/w/shop", 100)):
        assert [at for at in range(1, 400) if not silence.saving_was_off(session, place, at)] == list(range(1, since))
        assert silence.saving_was_off(session, place, 0), "of what bears no time nobody knows that it was before"
    switch(settings.data_dir, True, ["recall"])
    assert CapturePolicy(settings).saving_was_off("x", "/y", 300)
    switch(settings.data_dir, True)
    assert not CapturePolicy(settings).saving_was_off("x", "/y", 400)


def test_what_tells_no_time_since_when_holds_for_all_times(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / ".memctl.toml").write_text("save = false\n")
    assert CapturePolicy(settings).saving_was_off("s", str(tmp_path), 1)
    assert CapturePolicy(Settings(data_dir=tmp_path / "other", save=False)).saving_was_off("s", "/w", 1)
    settings.data_dir.mkdir()
    for said in ('{"everywhere": ["save"]}', "{"):
        (settings.data_dir / "off.json").write_text(said)
        assert CapturePolicy(settings).saving_was_off("s", "/w", 1)


WHATS = st.sets(st.sampled_from(BOTH), min_size=1)


@given(
    everywhere=st.sets(st.sampled_from(["recall"])),
    sessions=st.dictionaries(st.sampled_from(["s1", "s2"]), WHATS),
    projects=st.dictionaries(st.sampled_from(["/", "/w", "/w/shop", "/w/shop/api", "//w"]), WHATS),
    session=st.sampled_from(["s1", "s2", "s3"]),
    place=st.sampled_from(["/w/shop", "/w/shop/", "/w//shop/./api", "/w/shop/../x", "/w/shopping", "/", "//w/shop"]),
)
def test_a_hook_that_reaches_nobody_reads_the_list_as_the_door_does(
    everywhere: set[What], sessions: dict[str, set[What]], projects: dict[str, set[What]], session: str, place: str
) -> None:
    off = {"everywhere": everywhere, "sessions": sessions, "projects": projects}
    payload = json.dumps({"session_id": session, "cwd": place}).encode()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "off.json").write_bytes(msgspec.json.encode(off))
        by_door = CapturePolicy(Settings(data_dir=Path(folder))).saving_was_off(
            session, normalise(place), time.time_ns() // 1000
        )
        assert hook._saving_is_off(folder, payload) == by_door
