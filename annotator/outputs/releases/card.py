"""The card of a release: README.md with the front matter of the Hugging Face Hub's dataset cards, and what to know.

It holds no time and nobody's name, so that the same state of a project always has the same card.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from annotator.analysis import helpsteer2
from annotator.analysis.agreement.reports import Agreement, AgreementReport
from annotator.infrastructure.web.markdown_tables import line, table
from annotator.models import Attribute, Label, Origin, Release
from annotator.outputs.releases.checks import CHECKS
from annotator.outputs.releases.particulars import OTHER, UNKNOWN
from annotator.outputs.releases.release_rows import CONFIGURATIONS, SPLITS
from annotator.stages.consensus.rules import Rules
from annotator.statistics.pair_counts import Selection

FEWEST = 3
"""Responses from which on a correlation says anything."""


@dataclass
class Sums:
    """What a mean, a deviation and a correlation are made of: sums over pairs of scores."""

    count: int = 0
    x: int = 0
    y: int = 0
    xx: int = 0
    yy: int = 0
    xy: int = 0

    def add(self, x: int, y: int) -> None:
        self.count += 1
        self.x, self.y = self.x + x, self.y + y
        self.xx, self.yy, self.xy = self.xx + x * x, self.yy + y * y, self.xy + x * y

    def mean(self) -> float | None:
        return self.x / self.count if self.count else None

    def deviation(self) -> float | None:
        """Returns the standard deviation of the population."""
        return sqrt(self.count * self.xx - self.x**2) / self.count if self.count else None

    def correlation(self) -> float | None:
        """Returns Pearson's r; None of few scores, or where one side never varies."""
        widths = (self.count * self.xx - self.x**2) * (self.count * self.yy - self.y**2)
        if self.count < FEWEST or not widths:
            return None
        return (self.count * self.xy - self.x * self.y) / sqrt(widths)


class LabelStatistics:
    """Means and deviations of each attribute, its correlation with the deciding one, and the lengths of texts.

    The rows of a task come one after the other; its prompt counts once.
    """

    def __init__(self, attributes: Sequence[str], *, deciding: str) -> None:
        self.responses = self.prompts = self.response_characters = self.prompt_characters = 0
        self.scores = {key: Sums() for key in attributes}
        self.with_deciding = {key: Sums() for key in attributes}
        self._deciding = deciding
        self._task: int | None = None

    def add(self, task: int, row: dict[str, Any]) -> None:
        self.responses += 1
        self.response_characters += len(row["response"])
        if task != self._task:
            self._task = task
            self.prompts += 1
            self.prompt_characters += len(row["prompt"])
        for key in self.scores:
            if (score := row.get(key)) is not None:
                self.scores[key].add(score, 0)
                if (decides := row.get(self._deciding)) is not None:
                    self.with_deciding[key].add(score, decides)

    def mean_prompt(self) -> float | None:
        return self.prompt_characters / self.prompts if self.prompts else None

    def mean_response(self) -> float | None:
        return self.response_characters / self.responses if self.responses else None


SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
         (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"))  # fmt: skip
LARGEST = "100M<n<1B"
_NO_LICENSE = "No licence has been chosen. Ask whoever gave you this data before you use it, and before you pass it on."
_INTENDED_USE = (
    "Training and judging reward models and other models of what people prefer, and research on how people rate. The "
    "labels say how these annotators rated these responses under this rubric. They are no facts about the world, and "
    "no judgement of a person or of a model's other responses."
)
_LIMITS = (
    "The labels are opinions of few people on each response; the table of agreement says how far they share them. "
    "Prompts and responses are not a random sample of anything unless the notes say so. Responses may be wrong, and "
    "may offend. Patterns looked for personal information, secrets and paths; patterns miss some."
)


@dataclass(frozen=True)
class CardFacts:
    """What the card says about the rows and the people behind them.

    `rows` counts them by configuration and split. `raters` are pseudonyms with the number of annotations that count.
    `versions` are those of the rubric that rows were made under, the newest first, with their attributes, and
    `attributes` those of the labels. `labels` are counted by version and source, `annotations` that count by origin.
    """

    rows: Mapping[str, Mapping[str, int]]
    tasks: int
    left_out: int
    texts: int
    languages: Sequence[str]
    versions: Mapping[int, Sequence[Attribute]]
    attributes: Sequence[Attribute]
    labels: Mapping[tuple[int, str], int]
    annotations: Mapping[str, int]
    statistics: LabelStatistics
    report: AgreementReport
    raters: Sequence[tuple[str, int]]
    imported_raters: int
    rated_tasks: int
    content_hash: str

    def labels_by_version(self) -> dict[int, int]:
        counts = Counter[int]()
        for (version, _source), number in self.labels.items():
            counts[version] += number
        return dict(sorted(counts.items(), reverse=True))

    def imported_labels(self) -> int:
        return sum(number for (_version, source), number in self.labels.items() if source == Label.Source.IMPORTED)


def card(release: Release, facts: CardFacts) -> str:
    """Returns the text of README.md."""
    title = line(release.title or release.project.name)
    sections = [
        _front_matter(release, facts, title),
        f"# {title}\n\nRelease {release.number} of {line(release.project.name)}, made with Rewardloop.",
        *([release.notes.strip()] if release.notes.strip() else []),
        _contents(facts),
        _collection(release, facts),
        _rubric(facts),
        _agreement(facts),
        _statistics(release, facts),
        _people(facts),
        f"## Intended use\n\n{release.intended_use.strip() or _INTENDED_USE}",
        f"## Known limits\n\n{release.limits.strip() or _LIMITS}",
        _license(release),
        _checks(facts),
    ]
    return "\n\n".join(sections) + "\n"


# Front matter ----------------------------------------------------------------------------------------------


def _front_matter(release: Release, facts: CardFacts, title: str) -> str:
    lines = [f"pretty_name: {json.dumps(title)}", f"license: {release.license}"]
    if release.license == OTHER:
        lines += ["license_name: described-in-the-card", "license_link: README.md"]
    if facts.languages:
        lines += ["language:", *(f"- {json.dumps(code)}" for code in facts.languages)]
    most = max(sum(splits.values()) for splits in facts.rows.values())
    lines += ["size_categories:", f"- {next((size for below, size in SIZES if most < below), LARGEST)}"]
    lines += ["task_categories:", "- text-generation", "- text-classification"]
    lines += ["tags:", "- human-feedback", "- reward-model", "- preference-learning", "- rewardloop"]
    lines += ["configs:", *_configs(facts)]
    return "\n".join(["---", *lines, "---"])


def _configs(facts: CardFacts) -> Iterator[str]:
    is_first = True
    for configuration in CONFIGURATIONS:
        if not (splits := facts.rows.get(configuration.name)):
            continue
        yield f"- config_name: {configuration.name}"
        if is_first:
            yield "  default: true"
        yield "  data_files:"
        for split in splits:
            yield f"  - split: {split}"
            yield f"    path: {configuration.folder}/{split}-*.parquet"
        is_first = False


# The body --------------------------------------------------------------------------------------------------


def _contents(facts: CardFacts) -> str:
    rows = []
    for configuration in CONFIGURATIONS:
        if splits := facts.rows.get(configuration.name):
            counts = [_count(splits.get(split, 0)) for split in SPLITS]
            rows.append([f"`{configuration.name}`", configuration.meaning, *counts])
    loading = 'from datasets import load_dataset\n\nload_dataset("path/to/this/folder")'
    *_others, named = facts.rows
    return (
        "## What is in it\n\n"
        + table(["configuration", "rows", *SPLITS], rows)
        + "\n\nThe split is by prompt: a hash of the prompt alone decides, so a prompt does not change its side as the "
        "data grows. `task` and `response_id` are the ids of the imported rows; rows of one task "
        "have the same `task` in every configuration. Prompts of several turns are one string, as in HelpSteer2: "
        "`\\n<extra_id_1>Assistant\\n` and `\\n<extra_id_1>User\\n` stand before the turns after the first.\n\n"
        f'```python\n{loading}\nload_dataset("path/to/this/folder", "{named}")\n```'
    )


def _collection(release: Release, facts: CardFacts) -> str:
    rules, project = Rules.of(release.project), release.project
    asked = [
        *(["a score for each attribute of the rubric, and a preference between the two responses"]
          if project.ask_preference else ["a score for each attribute of the rubric"]),
        *(["whether each response is safe"] if project.ask_safety else []),
        *(["how confident they are"] if project.ask_confidence else []),
        *(["what is good and bad about each response"] if project.ask_feedback else []),
        *(["the domain of the task"] if project.domains else []),
        *(["the language of the task"] if project.ask_language else []),
    ]  # fmt: skip
    rows = [
        ["annotators who are first asked to rate a task", str(rules.base), "3"],
        ["annotators of a task at most", str(rules.most), "5"],
        [f"spread of *{rules.attribute}* above which more are asked", str(rules.escalate_above), "2"],
        ["annotations that make a label, those closest to each other", str(rules.keep), "3"],
        [f"spread of *{rules.attribute}* above which a task is dropped", str(rules.drop_above), "2"],
        ["annotations whose spread decides about dropping", rules.spread_scope, "kept"],
    ]
    return (
        f"## How it was collected\n\n{_origins(facts, '; '.join(asked))} "
        "The protocol is that of HelpSteer2 (arXiv 2406.08673) with these numbers:\n\n"
        + table(["number", "here", "HelpSteer2"], rows)
        + "\n\nA spread is the largest difference between two scores of a response. A label is the mean of the kept "
        "annotations, rounded to a whole number. `label_source` says where it comes from: `consensus` of the "
        "annotators, `adjudicated` by a reviewer, or `imported` with the data."
    )


def _origins(facts: CardFacts, asked: str) -> str:
    """Returns how many annotations came from where, and what is known of how people gave them."""
    counts = {origin: facts.annotations.get(origin, 0) for origin in Origin.values}
    rated, imported, simulated = (counts[one] for one in (Origin.PERSON, Origin.IMPORTED, Origin.SIMULATED))
    sentences = []
    if rated or not (imported or simulated or facts.imported_labels()):
        number = f"{_count(rated)} of the annotations were" if imported or simulated else "Annotations were"
        sentences.append(
            f"{number} given by people who rated responses to prompts in this product. They saw neither the names of "
            "the models nor each other's ratings, and the responses in an order of their own. They were asked for "
            f"{asked}."
        )
    for many, what in ((imported, "annotations"), (facts.imported_labels(), "labels")):
        if many:
            sentences.append(f"{_count(many)} {what} were imported; how they were collected is not known here.")
    if simulated:
        sentences.append(f"{_count(simulated)} annotations were simulated: no person gave them.")
    return " ".join(sentences)


def _rubric(facts: CardFacts) -> str:
    parts = ["## Rubric\n\nScores count the levels from 0."]
    if len(facts.versions) > 1:
        labels = ", ".join(f"version {version}: {_count(n)}" for version, n in facts.labels_by_version().items())
        parts.append(
            "The rubric has changed: `rubric_version` says which version a label was made under, the newest one where "
            "its annotations are of several. A row has no value of what its version did not ask for. "
            f"Labels by version: {labels or 'none'}."
        )
    described: dict[str, set[tuple[str, str, str]]] = {}
    for version, attributes in facts.versions.items():
        for attribute in attributes:
            text = (attribute.name, attribute.description, json.dumps(attribute.levels))
            if text not in (known := described.setdefault(attribute.key, set())):
                known.add(text)
                parts += _attribute(attribute, f", version {version}" if len(facts.versions) > 1 else "")
    empty = [f"`{one.key}`" for one in facts.attributes if not facts.statistics.scores[one.key].count]
    if empty and facts.labels:
        parts.append(f"No label has a score of {', '.join(empty)}.")
    return "\n\n".join(parts)


def _attribute(attribute: Attribute, version: str) -> list[str]:
    levels = [[str(score), line(text)] for score, text in reversed(list(enumerate(attribute.levels)))]
    head = f"### {line(attribute.name)} (`{attribute.key}`){version}"
    about = [attribute.description.strip()] if attribute.description.strip() else []
    return [head, *about, table(["score", "meaning"], levels)]


def _agreement(facts: CardFacts) -> str:
    report = facts.report
    head = ["attribute", "first three", "all", "kept", "responses", "HelpSteer2: first, improved, filtered"]
    rows = []
    asked = {one.key for attributes in facts.versions.values() for one in attributes} or set(report.all)
    for key in filter(asked.__contains__, report.all):
        estimates = [report.selections[selection][key] for selection in Selection]
        samples = report.all[key].samples
        known = helpsteer2.ATTRIBUTES.get(key)
        theirs = f"{known.initial:.3f}, {known.improved:.3f}, {known.filtered:.3f}" if known else ""
        rows.append([f"`{key}`", *map(_kappa, estimates), _count(samples), theirs])
    further = {"preference": report.preference, "ranking": report.ranking, "safety": report.safety}
    for name, estimate in further.items():
        if estimate.samples:
            rows.append([f"({name})", "", _kappa(estimate), "", _count(estimate.samples), ""])
    return (
        "## Agreement\n\nQuadratic-weighted kappa of every two annotators of a response, with a 95 % interval over "
        "tasks, where there are five or more and somebody differs: 1 is full agreement, 0 is what chance alone would "
        "give. Responses weigh the same whatever their number of annotators. To keep the closest annotations "
        "raises kappa by construction, so it stands beside that of the first three and of all.\n\n" + table(head, rows)
    )


def _kappa(estimate: Agreement) -> str:
    if estimate.kappa is None:
        return "undefined"
    interval = f" [{estimate.interval[0]:.3f}, {estimate.interval[1]:.3f}]" if estimate.interval else ""
    return f"{estimate.kappa:.3f}{interval}"


def _statistics(release: Release, facts: CardFacts) -> str:
    statistics, deciding = facts.statistics, release.project.spread_attribute
    rows = []
    for attribute in facts.attributes:
        scores, both = statistics.scores[attribute.key], statistics.with_deciding[attribute.key]
        known = helpsteer2.published(attribute)
        theirs = f"{known.mean:.2f} / {known.deviation:.2f} / {known.correlation:.3f}" if known else ""
        ours = [scores.mean(), scores.deviation(), both.correlation()]
        rows.append([f"`{attribute.key}`", _count(scores.count), *map(_number, ours), theirs])
    other = [
        [
            "mean characters of a response",
            _number(statistics.mean_response(), 0),
            f"{helpsteer2.RESPONSE_CHARACTERS:,}",
        ],
        ["mean characters of a prompt", _number(statistics.mean_prompt(), 0), _count(helpsteer2.PROMPT_CHARACTERS)],
        [
            "mean annotations of a rated task",
            _number(sum(number for _, number in facts.raters) / facts.rated_tasks if facts.rated_tasks else None),
            f"{helpsteer2.RATERS:.2f}",
        ],
    ]
    head = ["attribute", "labels", "mean", "deviation", f"r with {deciding}", "HelpSteer2: mean / deviation / r"]
    return (
        "## Statistics\n\nOf the configuration `default`, both splits, beside what is published of HelpSteer2; `r` is "
        "Pearson's correlation.\n\n" + table(head, rows) + "\n\n" + table(["figure", "here", "HelpSteer2"], other)
    )


def _people(facts: CardFacts) -> str:
    listed = ", ".join(f"`{name}` ({_count(number)})" for name, number in facts.raters) or "nobody"
    imported = (
        f" Raters of imported files among them: {_count(facts.imported_raters)}." if facts.imported_raters else ""
    )
    return (
        f"## Annotators\n\nAnnotators whose work counts: {_count(len(facts.raters))}.{imported} They are named by "
        "pseudonyms that this project alone uses, with the number of their annotations that count. No demographic "
        f"information was collected.\n\n{listed}"
    )


def _license(release: Release) -> str:
    text = release.license_text.strip()
    if not text:
        text = _NO_LICENSE if release.license == UNKNOWN else f"This data is released under `{release.license}`."
    return f"## Licence\n\n{text}"


def _checks(facts: CardFacts) -> str:
    rows = [[check, "passed"] for check in CHECKS]
    return (
        f"## Checks\n\nEvery text of every row and this card were looked through, {_count(facts.texts)} texts in all. "
        f"Tasks that were left out because a text failed a check: {_count(facts.left_out)}.\n\n"
        + table(["check", "result"], rows)
        + f"\n\nContent hash of the rows: `{facts.content_hash}`. `manifest.json` has every file's size and SHA-256."
    )


# Writing ---------------------------------------------------------------------------------------------------


def _count(number: int) -> str:
    return f"{number:,}"


def _number(value: float | None, places: int = 3) -> str:
    return "" if value is None else f"{value:,.{places}f}"
