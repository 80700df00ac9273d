"""What a mapping says of a file: the columns that hold the prompt, the responses, and what people said of them.

A mapping is JSON, such as {"prompt": "question", "responses": [{"text": "answer_1"}, {"text": "answer_2"}]}. The page,
REST and the command read it with `read_mapping`, and a project keeps mappings by name (kept_mappings.py).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from annotator.infrastructure.db.storable_text import fault_in
from annotator.infrastructure.limits import MOST_RESPONSES
from annotator.infrastructure.refusals import Refusal
from annotator.stages.importing.decoders import MOST_COLUMNS
from annotator.stages.importing.field_checks import BadRow, shown, storable_text, whole_of_cell
from annotator.stages.importing.task_rows import ImportRules

LONGEST_COLUMN = 200
KEPT, IGNORED = "metadata", "ignored"
"""What becomes of columns that the mapping does not name."""
FIRST, SECOND = -1, 1
"""Votes say which response is better, and not how much."""
PERSON, LOWEST = "person", "lowest"
MOST_VOTES = 25
_OF_VOTES = ("column", PERSON, "first", "second", "tie")


class BadMapping(Refusal):
    """The mapping is not valid; the message says what to change."""

    status = 400
    code = "bad_mapping"


@dataclass(frozen=True)
class VoteColumn:
    """A column of votes, and how it writes that the first response is better, or the second, or neither.

    The votes are those of the people in the column `person`, or else of one person for the whole column.
    """

    column: str
    person: str = ""
    first: str = "1"
    second: str = "2"
    tie: str = "0"


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

    def added_to(self, rules: ImportRules) -> ImportRules:
        """Returns the project's rules with what the mapping says of ratings."""
        person = self.rated_by or rules.person
        return replace(rules, questions=self.questions, fitting_only=self.fitting_only, person=person)

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
    given = value.get("questions", {})
    if not isinstance(given, dict) or len(given) > MOST_COLUMNS:
        raise BadMapping(_('questions: Write an object like {"quality": "helpfulness"}.'))
    questions = {_name(question, "questions"): _name(meant, "questions") for question, meant in given.items()}
    of_tools: dict[str, Any] = {
        "questions": {name: meant for name, meant in questions.items() if meant},
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
    try:
        text = value.get("prompt_text", "")
        texts["prompt_text"] = "" if text == "" else storable_text(text, "prompt_text")
    except BadRow as bad:
        raise BadMapping(f"{bad}.") from bad
    if sum(bool(texts[name]) for name in ("prompt", "messages", "prompt_text")) != 1:
        raise BadMapping(
            _("Choose a column for the prompt, or one for the messages, or write one prompt for all rows.")
        )
    return ColumnMapping(responses=responses, rest=rest, fewer=fewer, votes=votes, lowest=lowest, **texts, **of_tools)


def fitting_only(mapping: ColumnMapping | None) -> ColumnMapping:
    """Returns the mapping that leaves out ratings that do not fit, and otherwise says the same."""
    return replace(mapping or ColumnMapping(), fitting_only=True)


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


def read_votes(value: Any) -> tuple[VoteColumn, ...]:
    """Reads the JSON of the columns of votes. Raises BadMapping."""
    if not isinstance(value, list | tuple) or len(value) > MOST_VOTES:
        raise BadMapping(_("votes: Write a list of at most %(most)s columns.") % {"most": MOST_VOTES})
    return tuple(_vote(given, f"votes[{number}]") for number, given in enumerate(value))


def _vote(value: Any, name: str) -> VoteColumn:
    given = {"column": value} if isinstance(value, str) else value
    if not isinstance(given, dict) or not given.get("column") or not given.keys() <= {*_OF_VOTES}:
        text = _('%(name)s: Write an object like {"column": "winner", "first": "1", "second": "2", "tie": "0"}.')
        raise BadMapping(text % {"name": name})
    words = {key: word_of(item) for key, item in given.items()}
    vote = VoteColumn(**words)
    if len({vote.first, vote.second, vote.tie}) < 3:
        raise BadMapping(_("%(name)s: first, second and tie must differ.") % {"name": name})
    return vote


def word_of(value: Any) -> str:
    return str(whole_of_cell(value)).strip()[:200]


def read_scores(value: Any, name: str) -> dict[str, str]:
    """Reads the column of each attribute's scores. Raises BadMapping."""
    if not isinstance(value, dict) or not all(isinstance(column, str) and column for column in value.values()):
        text = _('%(name)s: Write an object like {"helpfulness": "helpfulness_1"}.')
        raise BadMapping(text % {"name": name})
    return {str(attribute)[:200]: column[:200] for attribute, column in value.items()}


_PROMPTS = ("prompt", "question", "instruction", "input", "query", "request", "user")
_ANSWER = r"(?:response|answer|completion|output|reply|chosen|rejected|generation)s?"
_ANSWERS = re.compile(rf"{_ANSWER}|.*[\W_]{_ANSWER}(?:[\W_]?(?:\d+|[a-z]))?$", re.IGNORECASE)
"""Names such as `response_1`, `answer_a_text` and `model_a_answer`."""
_MODELS = re.compile(rf"models?(?!.*[\W_]{_ANSWER})|systems?[\W_]+(?:\d+|[a-z])$", re.IGNORECASE)


def guessed(columns: Sequence[str]) -> dict[str, Any]:
    """Returns the mapping that the names of the columns suggest, as JSON; what they do not suggest is empty."""
    by_name = {name.lower(): name for name in reversed(columns)}
    models = [name for name in columns if _MODELS.match(name)]
    answers = [name for name in columns if _ANSWERS.match(name) and name not in models][:MOST_RESPONSES]
    of_answers = models if len(models) == len(answers) else []
    others = (name for name in columns if name not in answers)
    asking = next((name for name in others if re.split(r"[\W_]+", name.lower())[-1] in _PROMPTS), "")  # User question
    return {
        "prompt": next((by_name[name] for name in _PROMPTS if name in by_name), asking),
        "messages": "",
        "responses": [
            {"text": name, "model": of_answers[number] if of_answers else ""} for number, name in enumerate(answers)
        ],
        "id": next((by_name[name] for name in ("id", "uid", "uuid", "task_id") if name in by_name), ""),
        "language": next((by_name[name] for name in ("lang", "language") if name in by_name), ""),
        "priority": by_name.get("priority", ""),
        "metadata": by_name.get("metadata", ""),
    }
