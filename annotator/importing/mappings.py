"""Turns rows of any columns into rows of our own layout: a mapping names the column for each of our fields.

A mapping is JSON, such as {"prompt": "question", "responses": [{"text": "answer_1"}, {"text": "answer_2"}]}. The page,
REST and the command read it with `read_mapping`, and a project keeps mappings by name (kept_mappings.py).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from typing import Any

from django.utils.translation import gettext as _

from annotator.db.storable_text import fault_in
from annotator.importing.decoders import MOST_COLUMNS
from annotator.importing.field_checks import BadRow, shown, storable_text
from annotator.importing.judgement_columns import (
    LOWEST,
    PERSON,
    BadMapping,
    VoteColumn,
    annotations_of,
    read_scores,
    read_votes,
)
from annotator.importing.nested_columns import cell, is_there, of_json, unnamed
from annotator.importing.prompts import messages_from_prompt
from annotator.importing.rows import Rules
from annotator.importing.sources import RawRow
from annotator.limits import MOST_RESPONSES

LONGEST_COLUMN = 200
LOOKED_AT = 100
"""The first rows of a file, one of which must have each column that the mapping names."""
LOOKED_AT_BYTES = 4 << 20
KEPT, IGNORED = "metadata", "ignored"
"""What becomes of columns that the mapping does not name."""
_NUMBER = re.compile(r"\s*-?\d{1,9}\s*")


class MissingColumn(BadMapping):
    """The mapping names a column that the file does not have; the message names the column."""

    code = "missing_column"


@dataclass(frozen=True)
class ResponseColumns:
    """The columns of one response. Its model's name is in the column `model`, or else is `model_name` in every row.

    `scores` names the column of each attribute's score.
    """

    text: str
    model: str = ""
    model_name: str = ""
    id: str = ""
    scores: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnMapping:
    """The column for each field of our rows; an empty name stands for none.

    The conversation is in `prompt` or in `messages`, or else `prompt_text` is the prompt of every row. A name such as
    `data.prompt` or `answers.0` reaches into a column. Without columns, the file's own layout is read.
    """

    responses: tuple[ResponseColumns, ...] = ()
    prompt: str = ""  # the conversation as text
    messages: str = ""  # the conversation as a list of turns
    prompt_text: str = ""
    id: str = ""
    language: str = ""
    priority: str = ""
    metadata: str = ""
    rest: str = KEPT  # what becomes of all other columns
    fewer: bool = False  # leaves out a response whose cell is empty, which is an error otherwise
    votes: tuple[VoteColumn, ...] = ()
    person: str = ""  # the column of the person whose scores the row holds
    lowest: int = 1  # the lowest of those scores
    questions: Mapping[str, str] = field(default_factory=dict)  # the attribute that a tool's question stands for
    fitting_only: bool = False  # leaves ratings that do not fit out of their rows
    rated_by: str = ""  # the person whose ratings the file holds where its rows name nobody

    def columns(self) -> list[str]:
        """Returns the columns that the mapping names, each once."""
        own = [self.prompt, self.messages, self.id, self.language, self.priority, self.metadata, self.person]
        of_responses = [name for one in self.responses for name in (one.text, one.model, one.id)]
        people = [vote.person for vote in self.votes]
        return list(dict.fromkeys(filter(None, own + of_responses + self.judgements() + people)))

    def judgements(self) -> list[str]:
        """Returns the columns of votes and scores."""
        scores = [name for response in self.responses for name in response.scores.values()]
        return list(dict.fromkeys([*(vote.column for vote in self.votes), *scores]))

    def as_json(self) -> dict[str, Any]:
        """Returns the JSON that `read_mapping` reads, without what is empty."""
        if not self.responses:
            return {key: value for key, value in asdict(self).items() if value and key in _WITHOUT_COLUMNS}
        values = {key: value for key, value in asdict(self).items() if value or key == LOWEST}
        if not any(response.scores for response in self.responses):
            del values[LOWEST]
        values["responses"] = [
            {key: value for key, value in response.items() if value} for response in values["responses"]
        ]
        return values


# Reading a mapping -----------------------------------------------------------------------------------------


_TEXTS = ("prompt", "messages", "id", "language", "priority", "metadata", PERSON)
_OF_RESPONSES = ("text", "model", "model_name", "id")
_WITHOUT_COLUMNS = ("questions", "fitting_only", "rated_by")


def read_mapping(value: Any) -> ColumnMapping:
    """Reads the JSON of a mapping. Raises BadMapping."""
    if not isinstance(value, dict):
        raise BadMapping(
            _('The mapping must be an object like {"prompt": "question", "responses": [{"text": "answer"}]}.')
        )
    known = (*_TEXTS, "prompt_text", "responses", "rest", "fewer", "votes", LOWEST, *_WITHOUT_COLUMNS)
    _require_known(value, known, _("The mapping"))
    fitting_only = value.get("fitting_only", False)
    if not isinstance(fitting_only, bool):
        raise BadMapping(_("fitting_only: Write true or false, not %(given)s.") % {"given": shown(fitting_only)})
    of_tools: dict[str, Any] = {
        "questions": _questions(value.get("questions", {})),
        "fitting_only": fitting_only,
        "rated_by": _name(value.get("rated_by", ""), "rated_by").strip(),
    }
    if value and value.keys() <= {*_WITHOUT_COLUMNS}:
        return ColumnMapping(**of_tools)
    given = value.get("responses")
    if not isinstance(given, list) or not given:
        raise BadMapping(_("responses: Choose a column for one response at least."))
    if len(given) > MOST_RESPONSES:
        raise BadMapping(_("responses: A task has at most %(most)s responses.") % {"most": MOST_RESPONSES})
    rest, fewer = value.get("rest", KEPT), value.get("fewer", False)
    if rest not in (KEPT, IGNORED):
        text = _("rest: Write %(kept)r or %(ignored)r, not %(given)s.")
        raise BadMapping(text % {"kept": KEPT, "ignored": IGNORED, "given": shown(rest)})
    if not isinstance(fewer, bool):
        raise BadMapping(_("fewer: Write true or false, not %(given)s.") % {"given": shown(fewer)})
    responses = tuple(_response(response, f"responses[{number}]") for number, response in enumerate(given))
    votes, lowest = read_votes(value.get("votes", [])), value.get(LOWEST, 1)
    if votes and len(responses) != 2:
        raise BadMapping(_("votes: Only tasks of two responses have votes."))
    if type(lowest) is not int or not 0 <= lowest <= 1:
        raise BadMapping(_("lowest: Write 0 or 1, which the lowest level of a score is."))
    texts: dict[str, Any] = {name: _name(value.get(name, ""), name) for name in _TEXTS}
    texts["prompt_text"] = _prompt_text(value.get("prompt_text", ""))
    if sum(bool(texts[name]) for name in ("prompt", "messages", "prompt_text")) != 1:
        raise BadMapping(
            _("Choose a column for the prompt, or one for the messages, or write one prompt for all rows.")
        )
    return ColumnMapping(responses=responses, rest=rest, fewer=fewer, votes=votes, lowest=lowest, **texts, **of_tools)


def _questions(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MOST_COLUMNS:
        raise BadMapping(_('questions: Write an object like {"quality": "helpfulness"}.'))
    names = {_name(question, "questions"): _name(name, "questions") for question, name in value.items()}
    return {question: name for question, name in names.items() if name}


def fitting_only(mapping: ColumnMapping | None) -> ColumnMapping:
    """Returns the mapping that leaves out ratings that do not fit, and otherwise says the same."""
    return replace(mapping or ColumnMapping(), fitting_only=True)


def _prompt_text(value: Any) -> str:
    if value == "":
        return ""
    try:
        return storable_text(value, "prompt_text")
    except BadRow as bad:
        raise BadMapping(f"{bad}.") from bad


def mapping_of_text(text: str | bytes) -> ColumnMapping:
    """Reads a mapping from JSON text. Raises BadMapping."""
    try:
        return read_mapping(json.loads(text))
    except (ValueError, RecursionError) as wrong:
        raise BadMapping(_("The mapping is not JSON: %(error)s.") % {"error": wrong}) from wrong


def _response(value: Any, name: str) -> ResponseColumns:
    if not isinstance(value, dict):
        text = _('%(name)s: Write an object like {"text": "answer_1"}, not %(given)s.')
        raise BadMapping(text % {"name": name, "given": shown(value)})
    _require_known(value, (*_OF_RESPONSES, "scores"), name)
    columns = {key: _name(value.get(key, ""), f"{name}.{key}") for key in _OF_RESPONSES}
    if not columns["text"]:
        raise BadMapping(_("%(name)s.text: Choose the column of the response's text.") % {"name": name})
    if columns["model"] and columns["model_name"]:
        text = _("%(name)s: Give a column for the model's name or the name itself, not both.")
        raise BadMapping(text % {"name": name})
    return ResponseColumns(**columns, scores=read_scores(value.get("scores", {}), f"{name}.scores"))


def _require_known(value: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    if unknown := [key for key in value if key not in known]:
        text = _("%(what)s has an unknown field %(field)s. Known are %(known)s.")
        raise BadMapping(text % {"what": what, "field": shown(unknown[0]), "known": ", ".join(known)})


def _name(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_COLUMN:
        text = _("%(name)s: Write a column's name of at most %(most)s characters, not %(given)s.")
        raise BadMapping(text % {"name": name, "most": LONGEST_COLUMN, "given": shown(value)})
    if fault := fault_in(value):
        text = _("%(name)s: The name holds %(what)s, which cannot be stored.")
        raise BadMapping(text % {"name": name, "what": _(fault.what)})
    return value


# Applying it -----------------------------------------------------------------------------------------------


def read_by(rows: Iterator[RawRow], rules: Rules, mapping: ColumnMapping | None) -> tuple[Iterator[RawRow], Rules]:
    """Returns rows and rules as the mapping wants them read."""
    if mapping is None:
        return rows, rules
    person = mapping.rated_by or rules.person
    rules = replace(rules, questions=mapping.questions, fitting_only=mapping.fitting_only, person=person)
    return mapped_rows(rows, mapping) if mapping.responses else rows, rules


def mapped_rows(rows: Iterator[RawRow], mapping: ColumnMapping) -> Iterator[RawRow]:
    """Yields each row as a row of our own layout, or with the reason why it cannot be one.

    Raises:
        MissingColumn: None of the first rows has one of the mapping's columns.
    """
    first, weight = [], 0
    for row in islice(rows, LOOKED_AT):
        first.append(row)
        weight += row.size
        if weight > LOOKED_AT_BYTES:
            break
    require_columns(mapping, columns_of(first))
    while first:
        yield _mapped(first.pop(0), mapping)
    for row in rows:
        yield _mapped(row, mapping)
        del row  # a large row would stay in memory while the next one is read


def columns_of(rows: Sequence[RawRow]) -> list[str]:
    """Returns the names of the columns of these rows, in the order in which they occur, at most MOST_COLUMNS."""
    names = dict.fromkeys(chain.from_iterable(row.values or () for row in rows))
    return [str(name) for name in islice(names, MOST_COLUMNS)]


def require_columns(mapping: ColumnMapping, columns: Sequence[str]) -> None:
    """Raises MissingColumn unless the columns, which are empty if no row could be read, include the mapping's."""
    missing = [name for name in mapping.columns() if not is_there(name, columns)]
    if columns and missing:
        there = ", ".join(map(shown, columns[:20])) + (", ..." if len(columns) > 20 else "")
        text = _("The mapping names the column %(column)s, which the file lacks. It has %(others)s.")
        raise MissingColumn(text % {"column": shown(missing[0]), "others": there})


def _mapped(raw: RawRow, mapping: ColumnMapping) -> RawRow:
    if raw.values is None:
        return raw
    try:
        values = own_row(raw.values, mapping)
    except BadRow as bad:
        return RawRow(raw.line, None, str(bad), size=raw.size, field=bad.field)
    return RawRow(raw.line, values, size=raw.size, not_finite=raw.not_finite, is_mapped=True)


def own_row(values: Mapping[str, Any], mapping: ColumnMapping) -> dict[str, Any]:
    """Returns the row in our own layout (docs/formats.md). Raises BadRow, which names the column."""
    responses = [made for columns in mapping.responses if (made := _own_response(values, columns, mapping))]
    if not responses:
        names = ", ".join(columns.text for columns in mapping.responses)
        raise BadRow(f"no response has a text: {names}", mapping.responses[0].text)
    row: dict[str, Any] = {"messages": _messages(values, mapping), "responses": responses}
    if identity := _optional(values, mapping.id):
        row["id"] = _of_number(identity)
    if language := _optional(values, mapping.language):
        row["lang"] = language
    if (priority := _optional(values, mapping.priority)) is not None:
        row["priority"] = int(priority) if isinstance(priority, str) and _NUMBER.fullmatch(priority) else priority
    if metadata := _metadata(values, mapping):
        row["metadata"] = metadata
    if said := annotations_of(
        lambda column: _optional(values, column),
        votes=mapping.votes,
        scores=[columns.scores for columns in mapping.responses],
        person=mapping.person,
        rated_by=mapping.rated_by,
        lowest=mapping.lowest,
    ):
        row["annotations"] = said
    return row


def _own_response(values: Mapping[str, Any], columns: ResponseColumns, mapping: ColumnMapping) -> dict[str, Any] | None:
    text = _optional(values, columns.text)
    if text is None and mapping.fewer:
        return None
    made: dict[str, Any] = {"text": _text(values, columns.text)}
    if model := _optional(values, columns.model) or columns.model_name:
        made["model"] = model
    if identity := _optional(values, columns.id):
        made["id"] = _of_number(identity)
    return made


def _text(values: Mapping[str, Any], column: str) -> str:
    return storable_text(cell(values, column), column)


def _optional(values: Mapping[str, Any], column: str) -> Any:
    """Returns the value, or None where the row has none or an empty one."""
    try:
        value = cell(values, column) if column else None
    except BadRow:
        return None
    return None if isinstance(value, str) and not value.strip() else value


def _of_number(value: Any) -> Any:
    # Tables of numbers often hold whole ones as 7.0.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _messages(values: Mapping[str, Any], mapping: ColumnMapping) -> Any:
    if mapping.prompt_text:
        return [{"role": "user", "content": mapping.prompt_text}]
    if mapping.prompt:
        return messages_from_prompt(_text(values, mapping.prompt))
    return of_json(cell(values, mapping.messages))


def _metadata(values: Mapping[str, Any], mapping: ColumnMapping) -> Any:
    rest = unnamed(values, set(mapping.columns())) if mapping.rest == KEPT else {}
    own = of_json(_optional(values, mapping.metadata))
    if own is None:
        return rest
    return {**rest, **own} if isinstance(own, dict) else own
