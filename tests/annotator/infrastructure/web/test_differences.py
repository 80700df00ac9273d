"""What differs between two rendered texts is wrapped, and nothing else changes."""

import random
import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator.infrastructure.web.differences import DIFFERS, MOST_WORDS, with_differences
from annotator.infrastructure.web.markdown import render_markdown

WRAPPED = re.compile(rf"{DIFFERS}(.*?)</span>", re.DOTALL)
PIECES = ["the", "cat", "*sat*", "`on`", "a", "<b>", "&amp;", "&", "<", '"', "$x<y$", "\n\n", "- it", "1.", "ü"]
WORDS = st.lists(st.sampled_from(PIECES))
INSIDE = r"(?:<span[^>]*>[^<]*</span>|[^<])*"
"""What a wrapper is put around: text and formulas."""


def differing(first: str, second: str) -> tuple[list[str], list[str]]:
    one, other = with_differences(render_markdown(first), render_markdown(second))
    return WRAPPED.findall(one), WRAPPED.findall(other)


def plain(html: str) -> str:
    """What the wrappers were put around, without the ends of any spans."""
    return html.replace(DIFFERS, "").replace("</span>", "")


def common(html: str) -> list[str]:
    outside = re.sub(rf"{DIFFERS}{INSIDE}</span>", " ", html)
    return re.findall(r"\w+", re.sub(r"<[^>]*>|&\w+;", " ", outside))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("The cat sat on the mat.", "The cat sat on the mat.", ([], [])),
        ("The cat sat on the mat.", "The dog sat on the mat.", (["cat"], ["dog"])),
        ("The cat sat.", "The black cat sat.", ([], ["black"])),
        ("One two three four.", "", (["One two three four."], [])),
        ("It was **very good** indeed, I think.", "It was **quite good** indeed, I think.", (["very"], ["quite"])),
        ("Say 1 < 2 & go on now.", "Say 3 < 2 & go on now.", (["1"], ["3"])),
        ("a b c d x e f g h", "a b c d y e f g h", (["x"], ["y"])),
        ("so & so", "so <b> & so", ([], ["&lt;b&gt;"])),
        ("one two three & four", "one two three < four", (["&amp;"], ["&lt;"])),
    ],
)
def test_the_words_that_differ_are_wrapped(first: str, second: str, expected: tuple[list[str], list[str]]) -> None:
    assert differing(first, second) == expected


def test_what_is_equal_by_chance_is_no_island() -> None:
    assert differing("old words in the way", "new things in our path") == (
        ["old words in the way"],
        ["new things in our path"],
    )


def test_a_difference_ends_at_a_tag() -> None:
    one, other = differing("Keep this as it is. Go *now* or never", "Keep this as it is. Come")
    assert (one, other) == (["Go ", "now", " or never"], ["Come"])


def test_formulas_and_code_stay_whole() -> None:
    first, second = "Take $a<b$ and so on.\n\n```python\nx = 1\n```", "Take $c<d$ and so on.\n\n```python\nx = 2\n```"
    one, other = with_differences(render_markdown(first), render_markdown(second))
    assert re.findall(rf"{DIFFERS}<span[^>]*>([^<]*)</span></span>", one) == ["a&lt;b"]
    assert [one.count(DIFFERS), other.count(DIFFERS)] == [2, 2]


@given(WORDS, WORDS)
def test_only_wrappers_are_added_and_what_is_left_is_common(first: Sequence[str], second: Sequence[str]) -> None:
    htmls = [render_markdown(" ".join(words)) for words in (first, second)]
    one, other = with_differences(*htmls)
    assert [plain(one), plain(other)] == [html.replace("</span>", "") for html in htmls]
    assert common(one) == common(other)
    assert not re.search(r"&[#\w]*<", one + other)  # nothing stands inside an entity


@pytest.mark.parametrize("text", ['<span class="differs">', "</span><script>alert(1)</script>", '"><img src=x>'])
def test_hostile_text_is_only_text(text: str) -> None:
    one, _ = with_differences(render_markdown(text), render_markdown("nothing alike"))
    assert not re.search("<(script|img)", one)
    assert one.count(DIFFERS) == len(WRAPPED.findall(one))


def test_long_texts_take_no_time_and_longer_ones_stay_as_they_are() -> None:
    chance = random.Random(7)
    vocabulary = [f"word{number}" for number in range(900)]
    first = [chance.choice(vocabulary) for _ in range(2_800)]
    second = [word if chance.random() < 0.7 else chance.choice(vocabulary) for word in first]
    htmls = [f"<p>{' '.join(words)}</p>" for words in (first, second)]
    assert min(map(len, htmls)) > 20_000
    taken = []
    for _ in range(5):
        began = time.thread_time()
        one, _other = with_differences(*htmls)
        taken.append(time.thread_time() - began)
    assert (min(taken) < 0.05, DIFFERS in one) == (True, True)
    longer = f"<p>{'so ' * MOST_WORDS}</p>"
    assert with_differences(longer, htmls[0]) == (longer, htmls[0])
