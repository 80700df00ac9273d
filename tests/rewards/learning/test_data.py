from __future__ import annotations

import math
from pathlib import Path

import pytest

from rewards.learning.data import (
    BadManifest,
    BadRow,
    CorruptFile,
    EmptyPart,
    LeakedPrompt,
    MissingFile,
    OneClass,
    Turn,
    read_items,
    read_snapshot,
    read_tasks,
    targets_of,
    turns_of,
)
from tests.rewards.learning.builders import (
    ATTRIBUTES,
    make_response,
    make_row,
    make_rows,
    make_snapshot,
    write_jsonl,
)


def test_it_reads_a_snapshot(tmp_path: Path) -> None:
    snapshot = read_snapshot(make_snapshot(tmp_path, train=make_rows(5)[:4], validation=make_rows(5)[4:]))
    assert (len(snapshot.train), len(snapshot.validation)) == (4, 1)
    assert snapshot.train[0].conversation[0].content == "question 0?"


def test_it_refuses_a_directory_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="manifest"):
        read_snapshot(tmp_path)


def test_it_refuses_a_manifest_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 2}', encoding="utf-8")
    with pytest.raises(BadManifest, match="format 1"):
        read_snapshot(tmp_path)


def test_it_refuses_a_file_that_changed_after_the_manifest(tmp_path: Path) -> None:
    make_snapshot(tmp_path, train=make_rows(2)[:1], validation=make_rows(2)[1:])
    write_jsonl(tmp_path / "train.jsonl", make_rows(1, seed=3))
    with pytest.raises(CorruptFile, match=r"train\.jsonl"):
        read_snapshot(tmp_path)


@pytest.mark.parametrize("part", ["train", "validation"])
def test_it_refuses_an_empty_part(tmp_path: Path, part: str) -> None:
    parts = {"train": make_rows(2)[:1], "validation": make_rows(2)[1:]} | {part: []}
    with pytest.raises(EmptyPart, match=part):
        read_snapshot(make_snapshot(tmp_path, train=parts["train"], validation=parts["validation"]))


def test_an_attribute_without_any_label_is_left_out_and_named(tmp_path: Path) -> None:
    rows = [
        make_row(n, responses=[make_response(f"r{n}{m}", "text", {"helpfulness": m}) for m in (1, 2)]) for n in range(2)
    ]
    snapshot = read_snapshot(make_snapshot(tmp_path, train=rows[:1], validation=rows[1:]))
    assert (snapshot.attributes, snapshot.unscored) == (("helpfulness",), ("verbosity",))


@pytest.mark.parametrize("preference", [None, 2])
def test_it_refuses_labels_that_tell_nothing_apart(tmp_path: Path, preference: int | None) -> None:
    same = [make_response(f"r{n}", "text", {"helpfulness": 3, "verbosity": 1}) for n in range(2)]
    rows = [{**make_row(n, responses=same), "preference": preference} for n in range(2)]
    snapshot = make_snapshot(tmp_path, train=rows[:1], validation=rows[1:])
    if preference:
        assert len(read_snapshot(snapshot).train) == 1
    else:
        with pytest.raises(OneClass, match="the same labels"):
            read_snapshot(snapshot)


def test_it_refuses_a_prompt_on_both_sides(tmp_path: Path) -> None:
    with pytest.raises(LeakedPrompt, match="1 prompts"):
        read_snapshot(make_snapshot(tmp_path, train=make_rows(2), validation=make_rows(1)))


def test_it_names_the_line_that_is_not_json(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "train.jsonl", make_rows(2))
    path.write_text(path.read_text(encoding="utf-8") + '{"task": ', encoding="utf-8")
    with pytest.raises(BadRow, match=r"train\.jsonl, line 3: not JSON"):
        list(read_tasks(path))


def test_it_names_the_field_that_a_line_lacks(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "train.jsonl", [{"task": "t"}])
    with pytest.raises(BadRow, match="line 1: lacks 'responses'"):
        list(read_tasks(path))


@pytest.mark.parametrize("score", [7, -1, "3", True, math.nan])
def test_it_refuses_a_score_off_the_scale(tmp_path: Path, score: float) -> None:
    response = make_response("r", "text", {"helpfulness": 1}) | {"scores": {"helpfulness": score}}
    path = write_jsonl(tmp_path / "train.jsonl", [make_row(1, responses=[response])])
    with pytest.raises(BadRow, match="helpfulness"):
        list(read_tasks(path))


def test_it_reads_items(tmp_path: Path) -> None:
    row = {"id": "a", "conversation": [{"role": "user", "content": "q"}], "response": "r"}
    assert [item.response for item in read_items(write_jsonl(tmp_path / "items.jsonl", [row]))] == ["r"]


def test_a_missing_label_is_not_a_number(tmp_path: Path) -> None:
    row = make_row(1, responses=[make_response("r", "text", {"helpfulness": 2})])
    targets = targets_of(list(read_tasks(write_jsonl(tmp_path / "t.jsonl", [row]))), ATTRIBUTES)
    assert targets[0, 0] == 2
    assert math.isnan(targets[0, 1])


def test_turns_of_tools_become_texts_whose_roles_alternate() -> None:
    rows = [
        {"role": "user", "content": "The weather?"},
        {"role": "assistant", "content": "I look it up."},
        {"role": "assistant", "content": '[{"id": "c1"}]', "kind": "tool_calls"},
        {"role": "tool", "content": "sunny", "tool_call_id": "c1"},
        {"role": "user", "content": "And now?"},
    ]
    asked, called, answered = turns_of(rows)
    assert asked == Turn("user", "The weather?")
    assert called == Turn("assistant", 'I look it up.\n\nCall of a tool:\n[{"id": "c1"}]')
    assert answered == Turn("user", "Answer of a tool:\nsunny\n\nAnd now?")


def test_turns_without_tools_stay_as_they_are() -> None:
    rows = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    assert turns_of(rows) == (Turn("user", "a"), Turn("user", "b"))
