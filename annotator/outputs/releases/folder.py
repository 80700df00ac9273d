"""Writes a release's files: the rows of one moment as Parquet, the card, and the manifest with every file's hash.

The rows are read twice for the check alone: a task that fails in one configuration must be in none of the others, and
nothing is written before every text has been looked at. Memory does not grow with the rows, but for a few bytes a task.
"""

import hashlib
import json
import os
from array import array
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotator.analysis.agreement import reports, totals
from annotator.infrastructure.db.planning import take_statistics
from annotator.infrastructure.jobs import Pulse
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.tar_archives import Member, TarArchive, parts
from annotator.models import (
    Annotation,
    Assignment,
    Attribute,
    Consensus,
    ImportedRater,
    Label,
    Project,
    Rating,
    Release,
    Response,
    Task,
)
from annotator.outputs.exporting.columns import Row
from annotator.outputs.exporting.copied import Lines
from annotator.outputs.exporting.file_formats import encoded
from annotator.outputs.exporting.filters import STATES, Filters
from annotator.outputs.releases.card import CardFacts, LabelStatistics, card
from annotator.outputs.releases.checks import CHECKS, Checker
from annotator.outputs.releases.release_rows import (
    CONFIGURATIONS,
    SPLITS,
    Configuration,
    as_of_their_versions,
    one_moment,
)
from annotator.reading.pseudonyms import Pseudonyms
from annotator.stages.consensus.rules import Rules
from annotator.version import VERSION

FORMAT = 1
CARD, MANIFEST = "README.md", "manifest.json"
NAMED = 10
"""Tasks that an error names; more are counted."""


@dataclass(frozen=True)
class Written:
    """What came of a release: its hashes and counts, and the keys of its tasks."""

    content_hash: str
    counts: Mapping[str, Any]
    files: Sequence[Mapping[str, Any]]
    archive_size: int
    archive_sha256: str
    tasks: Sequence[int]


def write(release: Release, folder: Path, pulse: Pulse, *, now: datetime) -> Written:
    """Writes the release's files into the folder, which is empty.

    Raises:
        Refusal: There are no labels, no preferences and no ratings.
        Refusal: A text must not leave, and its task is not to be left out.
        What `pulse` raises to end the work.
    """
    project = release.project
    # Before the moment that is frozen, as it writes: agreement first counts what has changed.
    totals.refresh(project, now=now)
    report = reports.report(project, now=now)
    take_statistics(Task, Response, Label, Consensus, Assignment, Annotation, Rating)
    with one_moment():
        chosen = _chosen(release)
        survey = _survey(project, chosen, pulse)
        if survey.failing and not release.leave_out_failing:
            raise Refusal(_failures(survey.failing), code="checks_failed")
        pulse.rows, pulse.expected = 0, survey.rows
        data = _Data(project, folder, chosen, left_out=survey.failing)
        data.write(pulse)
        if not data.files:
            raise Refusal(_("There are no labels, preferences or ratings to release yet."), code="nothing_to_release")
        facts = _facts(project, data, survey, report)
    files = [*data.files, *_about(release, facts, folder, data.files, pulse)]
    release.files = sorted(files, key=lambda file: str(file["path"]))
    with closing(TarArchive(members_of(release, folder))) as archive:
        digest = hashlib.sha256()
        for part in parts(archive):
            digest.update(part)
            pulse.check()
    counts = {"tasks": facts.tasks, "rows": facts.rows, "left_out": facts.left_out, "annotators": len(facts.raters)}
    return Written(facts.content_hash, counts, release.files, archive.size, digest.hexdigest(), data.tasks())


def members_of(release: Release, folder: Path) -> list[Member]:
    """Returns the members of the release's archive, whose files are in the folder."""
    top = f"release-{release.number}"
    return [Member(f"{top}/{file['path']}", file["size"], folder / file["path"]) for file in release.files]


# Before anything is written --------------------------------------------------------------------------------


_Chosen = Mapping[str, Filters]
"""What is read of each configuration, by its name."""


def _chosen(release: Release) -> _Chosen:
    wanted = Filters(rubric_versions=(release.rubric_version,) if release.rubric_version else ())
    return {one.name: as_of_their_versions(one, release.project, wanted) for one in CONFIGURATIONS}


@dataclass
class _Survey:
    """What a look at every text has found: how many rows and texts there are, and the tasks that fail a check.

    `failing` has the name of each task and what was found in it.
    """

    rows: int = 0
    texts: int = 0
    failing: dict[int, tuple[str, str]] = field(default_factory=dict)


def _survey(project: Project, chosen: _Chosen, pulse: Pulse) -> _Survey:
    survey, checker = _Survey(), Checker()
    for configuration in CONFIGURATIONS:
        with closing(configuration.rows(project, chosen[configuration.name])) as rows:
            for placed in rows:
                survey.rows += 1
                pulse.count()
                pulse.check()
                for finding in checker.findings(placed.row):
                    survey.failing.setdefault(placed.task, (placed.row["task"], str(finding)))
    survey.texts = checker.texts
    return survey


def _failures(failing: Mapping[int, tuple[str, str]]) -> str:
    named = "; ".join(f"{task} ({finding})" for task, finding in list(failing.values())[:NAMED])
    text = ngettext(
        "%(number)d task holds text that must not be published: %(tasks)s. Retire it, or make the release without it.",
        "%(number)d tasks hold text that must not be published: %(tasks)s. Retire them, or make the release without "
        "them.",
        len(failing),
    )
    return text % {"number": len(failing), "tasks": named if len(failing) <= NAMED else f"{named}; ..."}


# The rows --------------------------------------------------------------------------------------------------


class _Data:
    """Writes the Parquet files, and adds up what the card says about their rows."""

    def __init__(self, project: Project, folder: Path, chosen: _Chosen, *, left_out: Collection[int]) -> None:
        self.rows: dict[str, dict[str, int]] = {}
        self.files: list[dict[str, Any]] = []
        self.languages: set[str] = set()
        self.labels = Counter[tuple[int, str]]()
        self.attributes = project.attributes_ever(versions=chosen[CONFIGURATIONS[0].name].rubric_versions)
        self.statistics = LabelStatistics(
            [attribute.key for attribute in self.attributes], deciding=project.spread_attribute
        )
        self._project, self._folder, self._chosen, self._left_out = project, folder, chosen, left_out
        self._digests: dict[str, str] = {}
        self._tasks = array("q")

    def write(self, pulse: Pulse) -> None:
        for configuration in CONFIGURATIONS:
            (self._folder / configuration.folder).mkdir()
            for split in SPLITS:
                self._write(configuration, split, pulse)
            if configuration.name not in self.rows:
                (self._folder / configuration.folder).rmdir()

    def _write(self, configuration: Configuration, split: str, pulse: Pulse) -> None:
        place = f"{configuration.folder}/{split}-00000-of-00001.parquet"
        digest, number = hashlib.sha256(), 0
        # Known before the first row: while rows are copied, the connection waits for ever with any other statement.
        columns = configuration.columns(self._project, self._chosen[configuration.name])

        def lines(rows: Iterable[Row]) -> Iterator[bytes]:
            nonlocal number
            for row in rows:
                number += 1
                line = _encode(row).encode() + b"\n"
                digest.update(line)
                yield line

        with closing(self._placed(configuration, split, pulse)) as rows:
            # Looked for before a process that writes Parquet is started.
            first = next(rows, None)
            if first is None:
                return
            content = encoded(Lines(lines(chain([first], rows))), columns, format="parquet")
            file = _write_file(self._folder, place, content, pulse)
        self.rows.setdefault(configuration.name, {})[split] = number
        self.files.append(file)
        # Of the rows, not of the file: the same rows have the same hash whatever version of the library wrote them.
        self._digests[f"{configuration.name}/{split}"] = digest.hexdigest()

    def _placed(self, configuration: Configuration, split: str, pulse: Pulse) -> Generator[Row]:
        last = None
        with closing(configuration.rows(self._project, self._chosen[configuration.name])) as rows:
            for placed in rows:
                pulse.check()
                if placed.split != split or placed.task in self._left_out:
                    continue
                pulse.count()
                if placed.task != last:
                    last = placed.task
                    self._tasks.append(last)
                    self.languages.add(placed.language.split("-")[0])
                if configuration is CONFIGURATIONS[0]:
                    self.statistics.add(placed.task, placed.row)
                    self.labels[placed.row["rubric_version"], placed.row["label_source"]] += 1
                yield placed.row

    def tasks(self) -> list[int]:
        """Returns the keys of the tasks that have a row in any file."""
        keys: list[int] = np.unique(np.frombuffer(self._tasks, dtype=np.int64)).tolist()
        return keys

    def levels(self) -> dict[str, int]:
        return {attribute.key: len(attribute.levels) for attribute in self.attributes}

    def versions(self) -> dict[int, Sequence[Attribute]]:
        """Returns the attributes of each version of the rubric that any row was made under, the newest first."""
        under = {version for filters in self._chosen.values() for version in filters.rubric_versions}
        every = self._project.versions_of_attributes().items()
        return {
            version: [one for one in attributes if one.scope == Attribute.Scope.RESPONSE]
            for version, attributes in every
            if version in under
        }

    def content_hash(self) -> str:
        identity = {"format": FORMAT, "levels": self.levels(), "rows": self._digests}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _write_file(folder: Path, place: str, content: Iterator[bytes], pulse: Pulse) -> dict[str, Any]:
    """Writes a file of the release; returns its path within the release, its size and its hash."""
    digest, size = hashlib.sha256(), 0
    with (folder / place).open("xb") as file:
        for part in content:
            file.write(part)
            digest.update(part)
            size += len(part)
            pulse.bytes += len(part)
        file.flush()
        os.fsync(file.fileno())
    return {"path": place, "size": size, "sha256": digest.hexdigest()}


# About the rows --------------------------------------------------------------------------------------------


def _facts(project: Project, data: _Data, survey: _Survey, report: reports.AgreementReport) -> CardFacts:
    counting = Assignment.objects.submitted().filter(counts=True, task__project=project, task__state__in=STATES)
    by_person = counting.order_by().values("annotator").annotate(number=Count("pk"))
    numbers = dict(by_person.values_list("annotator", "number"))
    names = Pseudonyms(project.pk)
    given = Annotation.objects.counting().for_project(project.pk).filter(assignment__task__state__in=STATES)
    by_origin = given.order_by().values("origin").annotate(number=Count("pk")).values_list("origin", "number")
    return CardFacts(
        rows=data.rows,
        tasks=len(data.tasks()),
        left_out=len(survey.failing),
        texts=survey.texts,
        languages=sorted(data.languages - {""}),
        versions=data.versions(),
        attributes=data.attributes,
        labels=data.labels,
        annotations=dict(by_origin),
        statistics=data.statistics,
        report=report,
        raters=sorted(
            ((names[person], number) for person, number in numbers.items()), key=lambda one: (-one[1], one[0])
        ),
        imported_raters=ImportedRater.objects.filter(project=project, user__in=list(numbers)).count(),
        rated_tasks=counting.order_by().values("task").distinct().count(),
        content_hash=data.content_hash(),
    )


def _about(
    release: Release, facts: CardFacts, folder: Path, data: Sequence[Mapping[str, Any]], pulse: Pulse
) -> Iterator[dict[str, Any]]:
    """Writes the card and the manifest, which lists every other file. Raises Refusal."""
    text = card(release, facts)
    yield (written := _write_file(folder, CARD, iter([_checked(text, CARD)]), pulse))
    manifest = _manifest(release, facts, [*data, written])
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    yield _write_file(folder, MANIFEST, iter([_checked(text, MANIFEST)]), pulse)


def _checked(text: str, name: str) -> bytes:
    if finding := next(Checker().findings(text), None):
        refusal = _(
            "The file %(file)s would contain %(what)s, which must not be published. Look at the project's name, its "
            "rubric and the ids of its tasks."
        )
        raise Refusal(refusal % {"file": name, "what": finding.what}, code="checks_failed")
    return text.encode()


def _manifest(release: Release, facts: CardFacts, files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    project = release.project
    return {
        "format": FORMAT,
        "made_with": f"Rewardloop {VERSION}",
        "project": project.slug,
        "release": release.number,
        "title": release.title,
        "license": release.license,
        "content_hash": facts.content_hash,
        "protocol": vars(Rules.of(project)),
        "rubric": {
            "key": project.rubric.key,
            "version": project.rubric.version,
            "levels": {attribute.key: len(attribute.levels) for attribute in facts.attributes},
            "labels_by_version": {str(version): number for version, number in facts.labels_by_version().items()},
        },
        "split": {"by": "prompt", "validation_share": project.validation_share},
        "counts": {"tasks": facts.tasks, "rows": facts.rows, "annotators": len(facts.raters)},
        "checks": {"passed": list(CHECKS), "texts": facts.texts, "tasks_left_out": facts.left_out},
        "files": {str(file["path"]): {"size": file["size"], "sha256": file["sha256"]} for file in files},
    }
