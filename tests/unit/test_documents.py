"""The sections of documents that agents write, and what a session asserts of them."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from session_events import Session, facts_of, only

from memctl.domain.events.facts import SectionWritten
from memctl.domain.language.documents import (
    MOST_SECTIONS,
    SECTION,
    files_named,
    is_document,
    named,
    sections_of,
)
from memctl.projections.memories import memories

LONG = "Run the migration before the tests, because the fixtures read the new column of the orders table."
GUIDE = f"# Orders\n\n{LONG}\n\n## Risks\n\n- {LONG}\n\n```sh\n# no heading\nmake test\n```\n\n## Short\n\nNo.\n"


def test_a_section_stands_under_the_title_and_a_fence_holds_no_heading() -> None:
    found = list(sections_of(GUIDE))
    assert [each.heading for each in found] == ["Orders", "Orders: Risks"]
    assert found[1].text.startswith("- Run the migration")
    assert "# no heading" in found[1].text


def test_what_stands_under_no_heading_is_a_section_too() -> None:
    assert [each.heading for each in sections_of(LONG)] == [""]


@given(st.text(alphabet="# `~\nab", max_size=2_000))
def test_no_text_gives_more_or_longer_sections_than_memory_keeps(text: str) -> None:
    found = list(sections_of(text * 20))
    assert len(found) <= MOST_SECTIONS
    assert all(len(each.text) <= SECTION for each in found)


def test_prose_is_a_document_and_a_list_of_releases_is_none() -> None:
    assert is_document("/p/.claude/skills/deploy/SKILL.md")
    assert is_document("C:\\p\\docs\\faq.mdx")
    assert not is_document("/p/CHANGELOG.md")
    assert not is_document("/p/main.py")


def test_what_is_written_for_the_moment_is_no_document() -> None:
    for path in (
        "/home/ada/.claude/plans/calm-river.md", "C:\\Users\\ada\\AppData\\Local\\Temp\\s\\scratchpad\\design.md",
        "/p/.planning/STATE.md", "/p/skills/deploy/release-prompt.md", "/p/docs/011-PLAN.md", "/tmp/notes.md",
    ):  # fmt: skip
        assert not is_document(path), path
    assert is_document("/p/docs/planets.md")
    session = Session()
    session.uses("Write", {"file_path": "/home/ada/.claude/plans/calm-river.md", "content": GUIDE}, "File created")
    assert not only(facts_of(session.events), SectionWritten)


def test_steps_examples_and_parts_of_sentences_are_no_sections() -> None:
    assert not list(sections_of(f"# Orders\n\n- [ ] {LONG}\n"))
    example = f"A standard looks like this, as everybody here knows by now:\n\n````markdown\n{GUIDE}````\n"
    assert [each.heading for each in sections_of(f"# Standards\n\n{example}{LONG}")] == ["Standards"]
    assert GUIDE not in next(sections_of(f"# Standards\n\n{example}{LONG}")).text
    assert not list(sections_of(f"and {LONG[4:]}", part=True))
    assert not list(sections_of(f"{LONG} Then append it to the", part=True))
    assert list(sections_of(LONG, part=True))
    assert not list(
        sections_of("[Fortran]: /docs/segments/languages/fortran\n[Rust]: /docs/segments/languages/rust\n" * 3)
    )


def test_files_are_known_by_their_folder_and_name() -> None:
    assert files_named("see src/shop/cart.py and `go.mod`, e.g. https") == ("src/shop/cart.py", "go.mod")
    assert named("/home/a/shop/src/cart.py") == named("D:\\work\\src\\cart.py") == "src/cart.py"


def test_of_a_section_that_is_written_again_the_newest_text_counts() -> None:
    session = Session()
    session.user("Write the guide")
    session.uses("Write", {"file_path": "/work/shop/docs/orders.md", "content": GUIDE}, "File created")
    session.edits("/work/shop/docs/orders.md", LONG, f"# Orders\n\n{LONG} See src/orders.py.\n")
    session.uses("Write", {"file_path": "/work/shop/CHANGELOG.md", "content": GUIDE}, "File created")
    found = only(facts_of(session.events), SectionWritten)
    last = {each.id: each for each in found}
    assert sorted(each.heading for each in last.values()) == ["Orders", "Orders: Risks"]
    [written] = [each for each in last.values() if each.heading == "Orders"]
    assert written.text.endswith("See src/orders.py.")
    assert written.names == ("src/orders.py",)
    assert len(found) == 3
    assert written.evidence[0].quote_hash


def test_a_section_reads_as_later_edits_left_it_and_is_gone_with_what_took_its_place() -> None:
    session = Session()
    path = "/work/shop/docs/orders.md"
    more = "The command prints the orders that wait, oldest first, and ends with their number."
    session.user("Write the guide")
    session.uses("Write", {"file_path": path, "content": f"{GUIDE}## Use\n\n{more}\n"}, "File created")
    session.edits(path, "oldest first", "newest first")
    session.edits(path, f"## Risks\n\n- {LONG}\n\n```sh\n# no heading\nmake test", "## Risk\n\nNone.")
    last = {each.heading: each.text for each in only(facts_of(session.events), SectionWritten)}
    assert last == {"Orders": LONG, "Orders: Risks": "", "Orders: Use": more.replace("oldest", "newest")}
    session.uses("Write", {"file_path": path, "content": f"# Orders\n\n{LONG}\n"}, "File written")
    last = {each.heading: each.text for each in only(facts_of(session.events), SectionWritten)}
    assert last["Orders: Use"] == ""


def test_a_section_that_is_gone_is_no_memory() -> None:
    session = Session()
    session.user("Write the guide")
    session.uses("Write", {"file_path": "/work/shop/docs/orders.md", "content": GUIDE}, "File created")
    written = only(facts_of(session.events), SectionWritten)[0]
    row = memories(None, written)
    assert row is not None
    assert memories(row, msgspec.structs.replace(written, text="")) is None
