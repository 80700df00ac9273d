"""Checked rows: what each layout takes, and the words with which it refuses."""

import json
from typing import Any

import pytest

from annotator.stages.importing.layouts import read_tasks
from annotator.stages.importing.task_rows import GivenPreference, ImportRules, RawRow, Rejected, TaskRow
from tests.builders import ATTRIBUTES, label_row, ratings_row, task_row

Checked = TaskRow | Rejected


def checked(*rows: dict[str, Any], from_csv: bool = False) -> list[Checked]:
    raw = [RawRow(number, row, from_csv=from_csv) for number, row in enumerate(rows, 1)]
    return list(read_tasks(raw, ImportRules(dict.fromkeys(ATTRIBUTES, 5), ties=False)))


def accepted(row: dict[str, Any]) -> TaskRow:
    (result,) = checked(row)
    assert isinstance(result, TaskRow), result
    return result


def refusal(row: dict[str, Any], *, from_csv: bool = False) -> str:
    (result,) = checked(row, from_csv=from_csv)
    assert isinstance(result, Rejected)
    return result.error


def preference_row(**fields: Any) -> dict[str, Any]:
    return {"prompt": "p", "response_1": "a", "response_2": "b", "preference_strength": 2, **fields}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


# Pairs -----------------------------------------------------------------------------------------------------


def texts(rows: list[Checked]) -> list[list[str]]:
    return [[response.text for response in row.responses] for row in rows if isinstance(row, TaskRow)]


def test_consecutive_rows_of_one_prompt_are_one_task() -> None:
    results = checked(label_row("p", "a"), label_row("p", "b"), label_row("q", "c"), label_row("q", "d"))
    assert texts(results) == [["a", "b"], ["c", "d"]]


def test_a_prompt_that_comes_four_times_is_two_tasks() -> None:
    assert texts(checked(*(label_row("p", text) for text in "abcd"))) == [["a", "b"], ["c", "d"]]


def test_a_single_row_is_a_task_of_one_response() -> None:
    assert texts(checked(label_row("p", "a"), label_row("q", "b"), label_row("p", "c"))) == [["a"], ["b"], ["c"]]


def test_a_bad_row_between_does_not_part_a_pair() -> None:
    results = checked(label_row("p", "a"), {"prompt": "p"}, label_row("p", "b"))
    assert texts(results) == [["a", "b"]]


def test_a_bad_half_leaves_the_other_half() -> None:
    results = checked(label_row("p", "a"), label_row("p", "b", helpfulness=7), label_row("q", "c"), label_row("q", "d"))
    assert texts(results) == [["a"], ["c", "d"]]


# Our own rows ----------------------------------------------------------------------------------------------


def test_a_task_row_keeps_everything_it_gives() -> None:
    row = task_row("t", priority=4, metadata={"from": "here"}, lang="en", tree="x")
    row["responses"][0] |= {"id": 12, "rank": 1, "metadata": {"k": [1.5, None, True]}}
    result = accepted(row)
    assert (result.external_id, result.priority) == ("t", 4)
    assert result.metadata == {"lang": "en", "tree": "x", "from": "here"}
    assert (result.responses[0].external_id, result.responses[0].model) == ("12", "model-0")
    assert result.responses[0].metadata == {"rank": 1, "k": [1.5, None, True]}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"messages": []}, "messages must be a list of at least one message"),
        ({"messages": ["hi"]}, "messages[0] is 'hi': it must be an object with role and content"),
        ({"messages": [{"role": "user"}]}, "the field content is missing"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages[0].content is empty"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content is 3: it must be text"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content holds 'hi': only texts can be"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role is 'tool'"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0].role is ['user']"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "the last message must be the user's"),
        ({"responses": []}, "responses must be a list of at least one response"),
        ({"responses": [{"text": ""}]}, "responses[0].text is empty"),
        ({"responses": [{"text": 3}]}, "responses[0].text is 3: it must be text"),
        ({"responses": [3]}, "responses[0] is 3"),
        ({"responses": [" "]}, "responses[0] is empty"),
        ({"responses": [{"text": "a", "id": "1"}, {"text": "b", "id": 1}]}, "two responses have the same id"),
        ({"responses": [{"text": "a\x00"}]}, "responses[0].text has a NUL byte at position 2"),
        ({"responses": [{"text": "a\ud800"}]}, "responses[0].text is not UTF-8 at position 2"),
        ({"responses": [{"text": "a", "rank": "\x00"}]}, "responses[0].metadata has a NUL byte"),
        ({"responses": [{"text": "a", "model": ["m"]}]}, "responses[0].model is ['m']"),
        ({"id": "x" * 201}, "id is 'xxx"),
        ({"id": 1.5}, "id is 1.5"),
        ({"priority": True}, "priority is True"),
        ({"priority": 10**9}, "priority is 1000000000"),
        ({"metadata": []}, "metadata is []: it must be an object"),
        ({"metadata": {"a": {"\x00": 1}}}, "metadata has a NUL byte"),
        ({"metadata": {"a": b"bytes"}}, "metadata holds a bytes: not a JSON value"),
        ({"metadata": nested(60)}, "metadata is nested more than 50 levels deep"),
        ({"metadata": nested(5000)}, "metadata is nested more than 50 levels deep"),
        ({"lang": nested(60)}, "metadata is nested more than 50 levels deep"),
        ({"comment": "x", "\ud800": 1}, "metadata is not UTF-8 at position 1"),
    ],
)
def test_a_bad_task_row_is_refused_by_its_field(fields: dict[str, Any], error: str) -> None:
    assert refusal(task_row("t") | fields).startswith(error)


@pytest.mark.parametrize("name", ["messages", "responses"])
def test_a_task_row_needs_its_fields(name: str) -> None:
    row = task_row("t")
    del row[name]
    assert refusal(row) == f"the field {name} is missing"


# HelpSteer2's rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "error"),
    [
        (7, "helpfulness is 7: its scores go from 0 to 4"),
        (-1, "helpfulness is -1: its scores go from 0 to 4"),
        ("3", "helpfulness is '3': its scores are the whole numbers 0 to 4"),
        (True, "helpfulness is True: its scores are the whole numbers 0 to 4"),
        (3.5, "helpfulness is 3.5: its scores are the whole numbers 0 to 4"),
        (float("nan"), "helpfulness is nan: its scores are the whole numbers 0 to 4"),
        (None, "helpfulness is None: its scores are the whole numbers 0 to 4"),
        ([3], "helpfulness is [3]: its scores are the whole numbers 0 to 4"),
        (10**30, "helpfulness is 1000000000000000000000000000000: its scores go from 0 to 4"),
    ],
)
def test_only_the_whole_numbers_0_to_4_are_scores(score: object, error: str) -> None:
    assert refusal(label_row("p", "a", helpfulness=score)) == error


def test_a_score_that_is_nested_beyond_all_measure_is_refused() -> None:
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    assert refusal(label_row("p", "a", helpfulness=value)).startswith("helpfulness is [[")


@pytest.mark.parametrize("name", ["prompt", "response", "verbosity"])
def test_a_flat_row_needs_its_fields(name: str) -> None:
    row = label_row("p", "a")
    del row[name]
    assert refusal(row).startswith(f"the field {name} is missing")


def test_what_no_layout_needs_is_kept_as_metadata() -> None:
    (flat,) = accepted(label_row("p", "a", toxicity=1, model="m")).responses
    assert (flat.metadata, flat.model) == ({"toxicity": 1}, "m")
    messages = [{"role": "user", "content": "x", "name": "y"}]
    assert accepted(task_row("t", comment="c", messages=messages)).metadata == {
        "comment": "c",
        "message_fields": {"0": {"name": "y"}},
    }
    assert accepted(preference_row(response_3="c")).metadata == {"response_3": "c"}


def test_a_score_of_an_attribute_that_the_project_lacks_is_refused() -> None:
    raw = RawRow(1, label_row("p", "a"))
    (refused,) = read_tasks([raw], ImportRules({"charm": 5}, ties=False))
    assert isinstance(refused, Rejected)
    assert refused.error.startswith("the project has no attribute helpfulness")


def test_a_prompt_and_a_response_alone_are_a_task_without_labels() -> None:
    assert accepted({"prompt": "p", "response": "a"}).responses[0].label == {}


def test_lists_become_ratings_in_their_order() -> None:
    task_row = accepted(ratings_row("p", "a", [1, 2], helpfulness=[4, 0]))
    assert [rating["helpfulness"] for rating in task_row.responses[0].ratings] == [4, 0]
    assert [rating["verbosity"] for rating in task_row.responses[0].ratings] == [1, 2]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([1], "the lists of ratings must have the same length, at least 1: helpfulness 1, correctness 2"),
        ([1, 7], "helpfulness[1] is 7"),
        ([1, "2"], "helpfulness[1] is '2'"),
        ([1, [2]], "helpfulness[1] is [2]"),
        ([1, None], "helpfulness[1] is None"),
    ],
)
def test_bad_lists_are_refused(value: list[Any], error: str) -> None:
    assert refusal(ratings_row("p", "a", [1, 2], helpfulness=value)).startswith(error)


def test_empty_lists_are_refused() -> None:
    assert "at least 1" in refusal(ratings_row("p", "a", []))


def test_in_csv_a_level_may_be_text() -> None:
    (result,) = checked(label_row("p", "a", **dict.fromkeys(ATTRIBUTES, " 2 ")), from_csv=True)
    assert isinstance(result, TaskRow)
    assert result.responses[0].label == dict.fromkeys(ATTRIBUTES, 2)


@pytest.mark.parametrize("cell", ["", "3.5", "7", "+3", "true", "[3", "[" * 100_000, "٣", "[3.5]"])
def test_in_csv_anything_else_is_refused(cell: str) -> None:
    row = label_row("p", "a", **dict.fromkeys(ATTRIBUTES, "2")) | {"helpfulness": cell}
    assert refusal(row, from_csv=True)


def test_in_csv_a_list_is_written_as_json() -> None:
    (result,) = checked(label_row("p", "a", **dict.fromkeys(ATTRIBUTES, json.dumps([1, 4]))), from_csv=True)
    assert isinstance(result, TaskRow)
    assert result.raters() == 2


# Preferences -----------------------------------------------------------------------------------------------


def test_a_preference_row_is_a_task_with_its_raters_preferences() -> None:
    given = [{"strength": -100, "justification": None}, {"strength": 3, "justification": "b is better"}]
    task_row = accepted(preference_row(split="val", all_preferences_unprocessed=given))
    assert (task_row.preference, task_row.metadata) == (2, {"split": "val"})
    assert task_row.preferences == (GivenPreference(-100, ""), GivenPreference(3, "b is better"))


def test_a_rater_s_tie_is_taken_where_ties_are_allowed() -> None:
    raw = RawRow(1, preference_row(all_preferences_unprocessed=[{"strength": 0}]))
    (taken,) = read_tasks([raw], ImportRules({}, ties=True))
    assert isinstance(taken, TaskRow)
    assert taken.preferences == (GivenPreference(0, ""),)
    (refused,) = read_tasks([raw], ImportRules({}, ties=False))
    assert isinstance(refused, Rejected)
    assert refused.error.endswith("is 0: this project allows no ties. A manager can turn on allow_ties")


def test_a_preference_of_0_is_no_preference() -> None:
    assert accepted(preference_row(preference_strength=0)).preference is None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"preference_strength": 4}, "preference_strength is 4"),
        ({"preference_strength": "2"}, "preference_strength is '2'"),
        ({"preference_strength": True}, "preference_strength is True"),
        ({"preference_strength": None}, "preference_strength is None"),
        ({"response_2": ""}, "response_2 is empty"),
        ({"all_preferences_unprocessed": {}}, "all_preferences_unprocessed must be a list"),
        ({"all_preferences_unprocessed": [3]}, "all_preferences_unprocessed[0] is 3"),
        ({"all_preferences_unprocessed": [{}]}, "the field strength is missing"),
        ({"all_preferences_unprocessed": [{"strength": 0}]}, "all_preferences_unprocessed[0].strength is 0"),
        ({"all_preferences_unprocessed": [{"strength": 1, "justification": 5}]}, "all_preferences_unprocessed[0].just"),
    ],
)
def test_a_bad_preference_row_is_refused_by_its_field(fields: dict[str, Any], error: str) -> None:
    assert refusal(preference_row(**fields)).startswith(error)
