"""Marks in rendered HTML: visible, and never at the cost of the HTML."""

import re
from html import unescape
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator.infrastructure.web.markdown import render_markdown
from annotator.models import PiiSpan, Project
from annotator.stages.pii.highlights import MOST, Mark, marked, marks_of
from annotator.stages.pii.scans import scan
from tests.annotator.stages.pii.test_scans import finds_first_letters
from tests.builders import NOW, make_task, make_user

MAIL = [Mark("ola@example.com", "email")]
OPEN = '<mark class="pii" title="E-mail address">'


def shown(html: str) -> str:
    """What stands on the page: text without tags."""
    return unescape(re.sub(r'<[^>"]*(?:"[^"]*"[^>"]*)*>', "", html))


def test_a_text_is_wrapped() -> None:
    assert marked("<p>To ola@example.com.</p>", MAIL) == f"<p>To {OPEN}ola@example.com</mark>.</p>"


def test_every_occurrence_is_wrapped_and_the_link_stays() -> None:
    html = marked(render_markdown("ola@example.com or ola@example.com"), MAIL)
    assert html.count(OPEN) == 2
    assert html.count('href="mailto:ola@example.com"') == 2


def test_attributes_are_left_alone() -> None:
    html = '<a href="http://x/?q=ola@example.com" title="a > ola@example.com">here</a>'
    assert marked(html, MAIL) == html


def test_formulas_are_left_alone() -> None:
    html = render_markdown("$ola@example.com$ and $$ola@example.com$$")
    assert marked(html, MAIL) == html


def test_code_is_marked() -> None:
    assert OPEN in marked(render_markdown("```\nmail ola@example.com\n```"), MAIL)


def test_a_longer_word_is_not_marked() -> None:
    assert OPEN not in marked("<p>zola@example.com</p>", MAIL)


def test_lines_and_entities_in_the_text_are_found() -> None:
    marks = [Mark("12 Q&A Street,\n  Apt <3>", "address")]
    html = marked(render_markdown("At 12 Q&A Street,\n  Apt <3> now"), marks)
    assert ">12 Q&amp;A Street,\nApt &lt;3&gt;</mark>" in html


@pytest.mark.parametrize(
    "text", ["amp", "lt", "quot", "p", "a", "x27", "class", "mark", "\x00", "&", "<p>", "</p>", '"']
)
def test_a_hostile_mark_breaks_nothing(text: str) -> None:
    html = render_markdown('Q&A <b> "x" \'y\' [l](http://x/?a=1&b=2 "t > amp") `p` amp lt a mark')
    assert shown(marked(html, [Mark(text, "other")])) == shown(html)


ALPHABET = st.text("ab &<>\"'`*_$[]()/@.\n1#|~\\-", max_size=60)


@given(text=ALPHABET, quote=ALPHABET)
def test_whatever_is_marked_the_page_says_the_same(text: str, quote: str) -> None:
    html = render_markdown(text)
    done = marked(html, [Mark(quote, "other")] if quote.strip() else [])
    assert shown(done) == shown(html)
    assert re.sub(r'<mark class="pii" title="Personal information">|</mark>', "", done) == html


def test_marks_that_overlap_are_one() -> None:
    html = marked("<p>a ola@example.com</p>", [Mark("example.com", "other"), *MAIL])
    assert html == f"<p>a {OPEN}ola@example.com</mark></p>"


def test_long_texts_are_fast() -> None:
    html = render_markdown("Write to ola@example.com <now> & then. " * 2_500)
    marks = [Mark(f"name {number}@example.com", "email") for number in range(MOST - 1)]
    begun = process_time()
    assert marked(html, [*marks, *MAIL]).count(OPEN) == 2_500
    assert process_time() - begun < 0.5


def test_only_what_patterns_found_is_marked(project: Project) -> None:
    task = make_task(project, prompt="Xanthippe")
    scan(finds_first_letters, now=NOW)
    PiiSpan.objects.create(
        task=task, turn=0, start=0, end=5, kind="other", source="annotator", marked_by=make_user("bob"), created_at=NOW
    )
    assert [mark.text for mark in marks_of(task)] == ["X", "A"]


def test_a_page_asks_once(project: Project, django_assert_num_queries: object) -> None:
    task = make_task(project)
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert marks_of(task) == []
