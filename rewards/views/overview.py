"""A project's overview: how far it is, at what pace, what its labels are like, and what is to be done next."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils.timezone import localdate
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from annotator import access
from annotator.access import user_of
from annotator.db.clock import database_now
from annotator.models import Project, User
from annotator.projects import helpsteer2
from annotator.projects.condition import MANY, Facts, Found, Problem, facts, problems
from annotator.projects.figures import Figures, figures, last_days
from annotator.projects.pace import Outlook, outlook, still_expected
from annotator.projects.pseudonyms import Naming, Pseudonyms
from annotator.views import overview_charts as charts
from rewards import registry
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.views.run_lists import state_of

TOLD_BY_STEPS = (Problem.NO_TASKS, Problem.NO_ANNOTATORS, Problem.TOO_FEW_ANNOTATORS, Problem.NO_GUIDELINES)
"""What is not wrong in a project that is only being set up: the first steps say it."""


@login_required
@never_cache
@require_GET
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the figures as they were last counted, and what is wrong as of now."""
    user, now = user_of(request), database_now()
    project = access.reviewed_project(user, slug)
    naming = access.naming_for(user, project)
    known, counted = facts(project), figures(project, now=now)
    run = TrainingRun.objects.of_rewards().filter(project=project).defer("log", "losses", "metrics").first()
    models = RewardModel.objects.filter(project=project, is_champion=True).select_related("run__snapshot")
    champion = models.defer("manifest", "run__metrics", "run__losses", "run__log", "run__config").first()
    links = Links(project, user, manages=naming.by_name)
    page: dict[str, Any] = {
        "project": project,
        "manages": naming.by_name,
        "facts": known,
        "more_than": MANY,
        "figures": counted,
        "champion": champion,
        "learnt": registry.labels(champion).learnt if champion else None,
        "run": run,
        "run_state": state_of(run) if run else None,
        "run_failed": run is not None and run.state == RunState.FAILED,
        "links": links,
    }
    if counted:
        names = _names(counted, naming)
        page |= {
            "steps": list(_first_steps(counted, known, run, links)),
            "by_demo": known.simulated,
            "outlook": _outlook(project, counted),
            "share": round(100 * counted.complete / counted.tasks) if counted.tasks else 0,
            "work": list(charts.work(counted, names)),
            "labels": list(charts.labels(project, counted)),
            "trend": list(charts.agreement(project, counted)),
            "kappas": charts.kappa_rows(project, counted),
            "correlations": charts.correlation_rows(project, counted),
            "escalated": counted.escalated / counted.complete if counted.complete else None,
            "dropped": counted.dropped / counted.judged if counted.judged else None,
            "published": helpsteer2,
            "compares": any(helpsteer2.published(one) for one in project.attributes_for()),
        }
        page["young"] = not all(step.done for step in page["steps"])
    told = TOLD_BY_STEPS if counted and not counted.rated_ever else ()
    page["problems"] = [shown_problem(found, links) for found in problems(project, known) if found.problem not in told]
    return render(request, "workspace/overview.html", page)


def _names(counted: Figures, naming: Naming) -> Callable[[int], str]:
    """Returns how each annotator is called; one whose account is gone has a dash."""
    people = {person for by_person in counted.annotations.values() for person in by_person}
    if not naming.by_name:
        pseudonyms = Pseudonyms(naming.project.pk) if people else {}
        return lambda person: pseudonyms[person]
    users = User.objects.only("username").in_bulk(people) if people else {}
    return lambda person: users[person].username if person in users else "–"


def _outlook(project: Project, counted: Figures) -> Outlook | None:
    per_day = [sum(counted.annotations.get(day, {}).values()) for day in last_days(counted.as_of)]
    escalated = counted.escalated / counted.complete if counted.complete else 0.0
    remaining = still_expected(
        wanted=counted.wanted,
        untested=counted.states.get("open", 0),
        base=project.base_annotators,
        most=project.max_annotators,
        escalated=escalated,
    )
    # The last day is not over yet.
    return outlook(per_day[:-1], remaining=remaining, today=localdate(counted.as_of))


# Where things are put right --------------------------------------------------------------------------------


class Links:
    """The addresses of the project's pages that the reader may open; an empty text for others."""

    def __init__(self, project: Project, user: User, *, manages: bool) -> None:
        self._slug, self._is_staff, self._manages = project.slug, user.is_staff, manages
        # Superusers see every project, and rate in those that they are members of.
        self._rates = not user.is_superuser or user.memberships.filter(project=project).exists()

    def _address(self, *names: str) -> str:
        """Returns the address of the first of these pages that this installation has."""
        for name in names:
            try:
                return reverse(name, args=[self._slug])
            except NoReverseMatch:
                continue
        return ""

    def _of_managers(self, *names: str) -> str:
        return self._address(*names) if self._manages else ""

    @property
    def settings(self) -> str:
        return self._of_managers("project-settings")

    @property
    def webhooks(self) -> str:
        return self._of_managers("webhooks")

    @property
    def imports(self) -> str:
        return self._of_managers("import-data")

    @property
    def people(self) -> str:
        return self._of_managers("people") or (reverse("admin:annotator_membership_changelist") if self._admin else "")

    @property
    def guidelines(self) -> str:
        return self._of_managers("edit-guidelines", "rubric") or self.settings

    @property
    def models(self) -> str:
        return self._address("models", "comparison")

    @property
    def review(self) -> str:
        return self._address("review")

    @property
    def annotate(self) -> str:
        return self._address("annotate") if self._rates else ""

    @property
    def export(self) -> str:
        return self._address("export-data")

    @property
    def workers(self) -> str:
        return reverse("admin:index") if self._admin else ""

    @property
    def _admin(self) -> bool:
        return self._manages and self._is_staff


@dataclass(frozen=True)
class Shown:
    """A problem in words, and where it is put right."""

    text: str
    advice: str
    link: str = ""
    link_text: str = ""


def shown_problem(found: Found, links: Links) -> Shown:
    """Returns the problem in words."""
    texts = {**_of_the_project(found, links), **_of_the_installation(found, links), **_of_people(found, links)}
    text, advice, (link, link_text) = texts[found.problem]
    return Shown(text, advice, link, link_text)


Texts = dict[Problem, tuple[str, str, tuple[str, str]]]
"""What is wrong, what to do, and where, with the name of that page."""


def _of_the_project(found: Found, links: Links) -> Texts:
    settings, data = (links.settings, _("Settings")), (links.imports, _("Import"))
    guidelines, nowhere = (links.guidelines, _("Guidelines")), ("", "")
    return {
        Problem.ARCHIVED: (_("The project is archived."), _("It takes no work until it is brought back."), settings),
        Problem.PAUSED: (_("The project is paused."), _("Nobody gets a task. Switch the pause off."), settings),
        Problem.NO_TASKS: (_("There are no tasks."), _("Import some, so that people have something to rate."), data),
        Problem.NO_TEST: (
            _("Annotators must pass a test, and there are no gold tasks for it."),
            _("Import gold tasks for the test, or do without it."),
            data if data[0] else settings,
        ),
        Problem.NO_STREAM: (
            _("Gold tasks are to be mixed in, and there are none."),
            _("Import gold tasks for the stream, or set their share to 0."),
            data if data[0] else settings,
        ),
        Problem.NO_GUIDELINES: (
            _("There are no guidelines, or a part of them is still to be written."),
            _("Annotators do not know what you expect of them."),
            guidelines if guidelines[0] else nowhere,
        ),
        Problem.NEVER_MET: (found.detail, _("Change the limit, or let another attribute decide."), settings),
        Problem.WEBHOOK_ENDED: (
            _("A webhook has been made inactive, because its receiver fails or wants no more messages."),
            _("The system behind it no longer hears of this project. Its page says what was wrong."),
            (links.webhooks, _("Webhooks")),
        ),
    }


def _of_the_installation(found: Found, links: Links) -> Texts:
    queue_does = {
        "light": _("Agreement, exports of large projects, deletions and changes of the protocol wait for it."),
        "train": _("Nothing can be trained until one runs."),
        "score": _("Responses get no scores until one runs."),
    }
    workers = (links.workers, _("Admin"))
    return {
        Problem.NO_REDIS: (
            _("Redis does not answer."),
            _("Background work cannot be handed out. Ask whoever runs the installation to start it."),
            workers,
        ),
        Problem.NO_WORKER: (
            _("No worker is running for the queue “%(queue)s”.") % {"queue": found.detail},
            queue_does.get(found.detail, ""),
            workers,
        ),
        Problem.UNFIT_WORKER: (found.detail, _("It looks again every few seconds, and goes on by itself."), workers),
        Problem.LOW_DISK: (
            _("The disk is nearly full."),
            _("Imports, snapshots and training runs are refused until there is room."),
            workers,
        ),
        Problem.FAILURES: (
            _("Background work fails: %(work)s") % {"work": found.detail},
            _("It is tried again by itself. The log of the light worker has the details."),
            workers,
        ),
    }


def _of_people(found: Found, links: Links) -> Texts:
    settings, people = (links.settings, _("Settings")), (links.people, _("People"))
    return {
        Problem.NO_ANNOTATORS: (_("There are no annotators."), _("Add people, or rate tasks yourself."), people),
        Problem.ALL_PAUSED: (
            _("Every annotator is paused."),
            _("Nobody can rate until you let somebody go on."),
            people,
        ),
        Problem.NOBODY_QUALIFIED: (
            _("No annotator has passed the test."),
            _("Ask them to take it, lower the threshold, or do without the test."),
            settings,
        ),
        Problem.TOO_FEW_ANNOTATORS: (
            ngettext(
                "A task may need %(most)s annotators, and only %(number)s is there.",
                "A task may need %(most)s annotators, and only %(number)s are there.",
                found.number,
            )
            % {"most": found.detail, "number": found.number},
            _("Tasks that need more people stay open. Add people, or let fewer rate each task."),
            people,
        ),
    }


@dataclass(frozen=True)
class Step:
    """One of the first things to do in a project, whether it is done, and where; the demo exports nothing itself."""

    text: str
    sentence: str
    done: bool
    link: str
    demo_does_it: bool = True


def _first_steps(counted: Figures, known: Facts, run: TrainingRun | None, links: Links) -> Iterator[Step]:
    rated = counted.rated_ever
    yield Step(_("Import data"), _("Conversations with their responses."), known.tasks, links.imports)
    yield Step(
        _("Write guidelines"),
        _("What annotators should look at, and when to skip."),
        known.guidelines,
        links.guidelines,
    )
    yield Step(
        _("Add people"), _("Annotators rate, reviewers settle what is disputed."), bool(known.annotators), links.people
    )
    yield Step(_("Rate"), _("Try a few tasks yourself first."), rated, links.annotate)
    reviewed = rated and not known.waiting()
    yield Step(_("Review"), _("Settle tasks whose ratings are too far apart."), reviewed, links.review)
    yield Step(
        _("Train a reward model"),
        _("It learns from the labels and scores every response."),
        run is not None,
        links.models,
    )
    yield Step(
        _("Export the labels"),
        _("As HelpSteer2's files, or in one of the other layouts."),
        bool(counted.exports),
        links.export,
        demo_does_it=False,
    )
