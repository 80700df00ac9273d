"""A project's overview: how far it is, at what pace, what its labels are like, and what is to be done next."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.timezone import localdate
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from annotator.analysis import helpsteer2
from annotator.analysis.figures import Figures, figures, last_days
from annotator.analysis.pace import Outlook, outlook, still_expected
from annotator.infrastructure.db.clock import database_now
from annotator.managing.issues import MANY, Problem, ProjectFacts, facts, issues
from annotator.models import Project, User
from annotator.pages.projects import overview_charts as charts
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.pseudonyms import Naming, Pseudonyms
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.pages.run_lists import state_of
from rewards.registry import registry

TOLD_BY_STEPS = (Problem.NO_TASKS, Problem.NO_ANNOTATORS, Problem.TOO_FEW_ANNOTATORS, Problem.NO_GUIDELINES)
"""What is not wrong in a project that is only being set up: the first steps say it."""


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
    reader = Reader(user, project, manages=naming.by_name)
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
        "review_link": reader.link("review"),
        "models_link": reader.link("models"),
    }
    if counted:
        names = _names(counted, naming)
        page |= {
            "steps": list(_first_steps(counted, known, run, reader)),
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
    page["issues"] = [
        {"issue": issue, "link": reader.link(issue.problem.value.page), "page": OF_MANAGERS[issue.problem.value.page]}
        for issue in issues(project, known)
        if issue.problem not in told
    ]
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


@dataclass(frozen=True)
class Reader:
    """Who reads the overview, and the pages that they may open."""

    user: User
    project: Project
    manages: bool

    def link(self, page: str) -> str:
        """Returns the address of a page, by its URL name; an empty text if the reader may not open it."""
        if page == "admin:index":
            return reverse(page) if self.manages and self.user.is_staff else ""
        if page == "annotate":
            # Superusers see every project, and rate in those that they are members of.
            allowed = not self.user.is_superuser or self.user.memberships.filter(project=self.project).exists()
        else:
            allowed = self.manages or page not in OF_MANAGERS
        return reverse(page, args=[self.project.slug]) if allowed else ""


OF_MANAGERS = {
    "admin:index": gettext_lazy("Admin"),
    "edit-guidelines": gettext_lazy("Guidelines"),
    "import-data": gettext_lazy("Import"),
    "people": gettext_lazy("People"),
    "project-settings": gettext_lazy("Settings"),
    "webhooks": gettext_lazy("Webhooks"),
}
"""The pages that only managers open, by URL name, with what they are called."""


@dataclass(frozen=True)
class OverviewStep:
    """One of the first things to do in a project, whether it is done, and where; the demo exports nothing itself."""

    text: str
    sentence: str
    done: bool
    link: str
    demo_does_it: bool = True


def _first_steps(
    counted: Figures, known: ProjectFacts, run: TrainingRun | None, reader: Reader
) -> Iterator[OverviewStep]:
    link, rated = reader.link, counted.rated_ever
    yield OverviewStep(_("Import data"), _("Conversations with their responses."), known.tasks, link("import-data"))
    text = _("What annotators should look at, and when to skip.")
    yield OverviewStep(_("Write guidelines"), text, known.guidelines, link("edit-guidelines"))
    text = _("Annotators rate, reviewers settle what is disputed.")
    yield OverviewStep(_("Add people"), text, bool(known.annotators), link("people"))
    yield OverviewStep(_("Rate"), _("Try a few tasks yourself first."), rated, link("annotate"))
    reviewed = rated and not known.waiting()
    yield OverviewStep(_("Review"), _("Settle tasks whose ratings are too far apart."), reviewed, link("review"))
    text = _("It learns from the labels and scores every response.")
    yield OverviewStep(_("Train a reward model"), text, run is not None, link("models"))
    text = _("As HelpSteer2's files, or in one of the other layouts.")
    yield OverviewStep(_("Export the labels"), text, bool(counted.exports), link("export-data"), demo_does_it=False)
