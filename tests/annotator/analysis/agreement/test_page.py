"""The agreement page: who may read it, what it tells, how it is sorted."""

import re

import pytest
from django.test import Client

from annotator.analysis.agreement import totals
from annotator.infrastructure.web.numbers import number, percent, signed
from annotator.models import Project, Role, User
from tests.builders import NOW, make_member, make_task, make_user, pseudonym, rate
from tests.conftest import Cast

PAGE = "/projects/talk/agreement/"


@pytest.fixture
def rated(project: Project, cast: Cast) -> None:
    """bob is a level above alice, erin anywhere; all share twelve responses."""
    for row, level in enumerate((0, 3, 1, 2, 3, 0)):
        make_task(project)
        for user, levels in zip(
            cast.annotators, ([level, 3 - level], [level + 1, 4 - level], [row % 5, 2]), strict=True
        ):
            rate(project, user, levels, preference=1 if level else -2)


def shown(client: Client, user: User, query: str = "") -> str:
    client.force_login(user)
    answer = client.get(f"{PAGE}{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def annotators(page: str) -> list[str]:
    """The names in the table of annotators, in its order."""
    return re.findall(r'<th scope="row" class="names"><a href="\?with=([^#]*)#', page)


def test_it_says_so_when_nothing_is_rated_twice(cast: Cast, client: Client) -> None:
    assert "No response has two ratings yet." in shown(client, cast.carol)


def test_it_tells_every_measure(cast: Cast, client: Client, rated: None) -> None:
    page = shown(client, cast.carol)
    for heading in (
        "Weighted kappa",
        "Over time",
        "Which ratings occur together",
        "Preferences",
        "Annotators",
        "Pairs",
    ):
        assert f"{heading}</h2>" in page
    assert 'data-chart="agreement"' in page
    assert 'data-chart="kappa"' in page
    assert "being counted" not in page


def test_the_first_three_are_told_apart_only_where_three_may_rate(cast: Cast, client: Client, rated: None) -> None:
    assert "First three" in shown(client, cast.carol)
    Project.objects.update(base_annotators=2, max_annotators=2, keep=2)
    assert "First three" not in shown(client, cast.carol)


def test_it_tells_its_age_while_much_is_to_be_counted(
    cast: Cast, client: Client, rated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "AT_ONCE", 0)
    assert "Nothing has been counted yet. 18 changes" in shown(client, cast.carol)
    totals._count_batch(Project.objects.get(), now=NOW, most=10)
    assert "31 Jan 2026, 12:00 UTC. 8 later changes are being counted in the background." in shown(client, cast.carol)


def test_annotators_are_sorted_by_links(cast: Cast, client: Client, rated: None) -> None:
    assert annotators(shown(client, cast.carol, "?by=name")) == ["alice", "bob", "erin"]
    assert annotators(shown(client, cast.carol, "?by=-name")) == ["erin", "bob", "alice"]
    assert annotators(shown(client, cast.carol, "?by=kappa.helpfulness"))[0] == "erin"
    assert annotators(shown(client, cast.carol, "?by=bias"))[-1] == "bob"


@pytest.mark.parametrize("query", ["?by=nonsense", "?by=kappa.", "?from=x", "?from=99999", "?with=nobody"])
def test_odd_questions_are_answered(cast: Cast, client: Client, rated: None, query: str) -> None:
    assert "Pairs</h2>" in shown(client, cast.carol, query)


def test_the_pairs_of_one_annotator_are_shown(cast: Cast, client: Client, rated: None) -> None:
    page = shown(client, cast.carol, "?with=alice")
    assert "Pairs with alice</h2>" in page
    assert "<bdi>alice</bdi>, <bdi>bob</bdi>" in page
    assert "<bdi>bob</bdi>, <bdi>erin</bdi>" not in page


def test_a_reviewer_reads_no_names(project: Project, cast: Cast, client: Client, rated: None) -> None:
    reviewer = make_user("rita")
    make_member(project, reviewer, role=Role.REVIEWER)
    page = shown(client, reviewer, "?with=alice")
    assert set(annotators(page)) == {pseudonym(annotator, project) for annotator in cast.annotators}
    assert not {"<bdi>alice</bdi>", "Pairs with alice"} & set(re.findall(r"<bdi>.*?</bdi>|Pairs with \w+", page))


def test_numbers_are_rounded_and_signed() -> None:
    assert (number(0.4567), number(-0.001), number(None), percent(0.856)) == ("0.46", "0.00", "–", "86\u00a0%")
    assert (signed(0.126), signed(-0.126), signed(0.001), signed(None)) == ("+0.13", "−0.13", "0.00", "–")
