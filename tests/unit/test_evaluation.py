"""Files of questions as they are published become passages and questions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from evaluation import UnknownDataset
from evaluation.bench import memory_of

sys.path.insert(0, str(Path(__file__).parents[1] / "eval"))
from question_files import load, split
from search_peers import judged, peers

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a beagle."},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Lovely!", "blip_caption": "a photo of a dog"},
            ],
            "session_2_date_time": "9:00 am on 10 June, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "My pottery class was fun."}],
        },
        "qa": [
            {"question": "What dog did Ann adopt?", "answer": "a beagle", "evidence": ["D1:1; D1:2"], "category": 1},
            {"question": "What car does Bo drive?", "adversarial_answer": "x", "evidence": ["D2:1"], "category": 5},
            {"question": "Nothing points anywhere", "answer": "?", "evidence": [], "category": 2},
        ],
    }
]  # fmt: skip
LONGMEMEVAL = [
    {
        "question_id": "q1", "question_type": "single-session-user", "question": "Which dog?", "answer": "beagle",
        "question_date": "2023/05/30 (Tue) 23:40", "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["s1"], "answer_session_ids": ["s1"],
        "haystack_sessions": [
            [{"role": "user", "content": "I got a beagle", "has_answer": True}, {"role": "assistant", "content": "Ok"}]
        ],
    },
    {
        "question_id": "q2_abs", "question_type": "single-session-user", "question": "Which cat?", "answer": "none",
        "question_date": "2023/05/30 (Tue) 23:40", "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["s1"], "answer_session_ids": ["s1"],
        "haystack_sessions": [[{"role": "user", "content": "I got a beagle"}]],
    },
]  # fmt: skip


def written(folder: Path, name: str, told: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
    return path


def test_locomo_turns_keep_speaker_picture_and_order(tmp_path: Path) -> None:
    (found,) = load(written(tmp_path, "locomo.json", LOCOMO))
    assert [each.text for each in found.passages] == [
        "Ann: I adopted a beagle.", "Bo: Lovely! [shows a photo of a dog]", "Bo: My pottery class was fun.",
    ]  # fmt: skip
    assert [each.before for each in found.passages] == ["", "conv-1/D1:1", ""]
    assert found.passages[0].at < found.passages[1].at < found.passages[2].at
    first, adversarial = found.questions
    assert first.gold == {"conv-1/D1:1", "conv-1/D1:2"}
    assert adversarial.gold == frozenset()
    assert memory_of(found.passages[1]).before == memory_of(found.passages[0]).id


def test_longmemeval_questions_have_a_haystack_each_and_may_have_no_answer(tmp_path: Path) -> None:
    (found,) = load(written(tmp_path, "lme.json", LONGMEMEVAL))
    assert [(each.id, each.gold) for each in found.questions] == [
        ("q1", frozenset(("q1/s1/0",))), ("q2_abs", frozenset()),
    ]  # fmt: skip
    assert {each.scope for each in found.passages} == {"q1", "q2_abs"}
    assert found.questions[0].now is not None


def test_tldr_asks_of_each_language_without_the_commands_name(tmp_path: Path) -> None:
    page = {"path": "common/tar.md", "ko": "# tar\n\n> tar 파일을 묶는다.\n", "en": "# tar\n\n> Archive files.\n"}
    path = tmp_path / "tldr.jsonl"
    path.write_text(json.dumps(page, ensure_ascii=False) + "\n", encoding="utf-8")
    english, korean = load(path)
    assert english.questions[0].query == korean.questions[0].query == "파일을 묶는다."
    assert english.passages[0].text.endswith("Archive files.\n")


@pytest.mark.parametrize("told", [[], {}, [{"x": 1}], "text", {"queries": 1, "passages": 2}])
def test_a_file_of_something_else_is_refused_by_name(tmp_path: Path, told: Any) -> None:
    with pytest.raises(UnknownDataset, match=r"other\.json"):
        load(written(tmp_path, "other.json", told))


def test_the_two_halves_are_all_questions_once(tmp_path: Path) -> None:
    many = [{**LONGMEMEVAL[0], "question_id": f"q{n}"} for n in range(40)]
    (found,) = load(written(tmp_path, "lme.json", many))
    tune, report = split(found.questions, "tune"), split(found.questions, "report")
    assert {each.id for each in tune} | {each.id for each in report} == {each.id for each in found.questions}
    assert tune
    assert report
    assert not {each.id for each in tune} & {each.id for each in report}


def test_the_peer_that_goes_by_words_finds_what_shares_them(tmp_path: Path) -> None:
    (found,) = load(written(tmp_path, "locomo.json", LOCOMO))
    rank = peers(found, None)["BM25, stemmed"]
    asked = found.questions[0]
    assert judged([asked], rank)[0].ranked[0] == "conv-1/D1:1"
