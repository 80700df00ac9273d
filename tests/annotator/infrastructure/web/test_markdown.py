"""Markdown becomes safe HTML."""

from time import process_time

import pytest

from annotator.infrastructure.web.markdown import HIGHLIGHT_SECONDS, HIGHLIGHT_UP_TO, render_markdown


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** and ~~gone~~", "<p><strong>bold</strong> and <s>gone</s></p>"),
        ("1. one\n2. two", "<ol>\n<li>one</li>\n<li>two</li>\n</ol>"),
        ("3. three", '<ol start="3">\n<li>three</li>\n</ol>'),
        ("`a < b`", "<p><code>a &lt; b</code></p>"),
        ("<b>raw</b>", "<p>&lt;b&gt;raw&lt;/b&gt;</p>"),
        ("$x^2 < y$", '<p><span class="math">x^2 &lt; y</span></p>'),
        (r"\(a_1 * b_1 * c\)", '<p><span class="math">a_1 * b_1 * c</span></p>'),
        ("$$\n\\frac{a}{b}\n$$", '<div class="math">\\frac{a}{b}</div>'),
        ("\\[\nx\n\\]", '<div class="math">x</div>'),
        ("It costs $5, not $6.", "<p>It costs $5, not $6.</p>"),
        ("`$x$`", "<p><code>$x$</code></p>"),
    ],
)
def test_it_renders(text: str, html: str) -> None:
    assert render_markdown(text).strip() == html


def test_a_table_is_a_table() -> None:
    assert "<th>a</th>" in render_markdown("| a | b |\n|---|---|\n| 1 | 2 |")


def test_code_is_highlighted_in_its_language() -> None:
    assert '<span class="k">def</span>' in render_markdown("```python\ndef f(): ...\n```")


def test_code_of_no_known_language_is_plain() -> None:
    assert "<span" not in render_markdown("```klingon\ndef f(): ...\n```")


def test_very_long_code_is_not_highlighted() -> None:
    assert "<span" not in render_markdown("```python\n" + "x = 1\n" * HIGHLIGHT_UP_TO + "```")


def test_links_open_beside_the_task_and_tell_nobody() -> None:
    html = render_markdown("[here](https://example.org/)")
    assert 'target="_blank"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "/logout/", "//example.org", "data:text/html,x", "vbscript:x"]
)
def test_other_links_lead_nowhere(target: str) -> None:
    assert "href" not in render_markdown(f"[x]({target})")


def test_images_are_not_fetched() -> None:
    assert "<img" not in render_markdown("![a cat](https://example.org/cat.png)")


def test_hostile_mathematics_is_only_text() -> None:
    html = render_markdown("$</span><script>alert(1)</script>$ and $$<img src=x onerror=alert(1)>$$")
    assert "<script" not in html
    assert "<img" not in html


RICH = "## Head\n\nSome **bold**, `code`, $x^2$.\n\n- one\n\n| a |\n|---|\n| 1 |\n\n```python\nx\n```\n\n"


@pytest.mark.parametrize(
    "piece",
    ["word ", RICH, "x", "مرحبا ", r"\(", "> ", "[", "*a **b ", r"\[", r"\[a\]", "<sub>", "- [ ] x\n", "|<br>"],
)
def test_a_hundred_thousand_characters_do_not_hold_up_the_page(piece: str) -> None:
    """0.3 s at most on a quiet machine, 1.5 s for brackets alone; the bound leaves room for a busy one."""
    before = process_time()
    assert render_markdown(piece * (100_000 // len(piece)))
    assert process_time() - before < 4


CODE = {"python": "(", "perl": "<", "yaml": "@"}
"""By the language, what its lexer looks at longest."""


def seconds_for(text: str) -> float:
    before = process_time()
    assert render_markdown(text)
    return process_time() - before


@pytest.mark.parametrize(
    "text",
    ["[" * 20_000, "*a_" * 15_000, *(f"```{name}\n{mark * 28_000}\n```" for name, mark in CODE.items())],
    ids=["brackets", "stars", "python", "perl", "yaml"],
)
def test_a_hostile_text_takes_little_longer_than_an_ordinary_one(text: str) -> None:
    ordinary = RICH * (len(text) // len(RICH))
    assert seconds_for(text) < 3 * seconds_for(ordinary) + 2 * HIGHLIGHT_SECONDS


def test_an_unclosed_formula_is_text_and_a_closed_one_after_it_is_not() -> None:
    assert render_markdown(r"\(a and \(b").strip() == "<p>(a and (b</p>"
    assert "math" in render_markdown(r"\(a\) and \(b")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (r"So \[ x^2 = 4 \] holds", '<p>So <span class="math">x^2 = 4</span> holds</p>'),
        (r"\[a_1\] and \[b_2\]", '<p><span class="math">a_1</span> and <span class="math">b_2</span></p>'),
        ("\\[\nx\n\\] and more", '<p><span class="math">x</span> and more</p>'),
        (r"\[x = 1\]", '<div class="math">x = 1</div>'),
        (r"as in \[1\] and \[sic\]", "<p>as in [1] and [sic]</p>"),
        (r"an open \[ x^2", "<p>an open [ x^2</p>"),
        ("H<sub>2</sub>O, x<sup>2</sup>", "<p>H<sub>2</sub>O, x<sup>2</sup></p>"),
        ("the tag <sub> and <br> here", "<p>the tag &lt;sub&gt; and &lt;br&gt; here</p>"),
        ("<sub><script></sub>", "<p>&lt;sub&gt;&lt;script&gt;&lt;/sub&gt;</p>"),
        ("- [ ] open\n- [x] done", "<ul>\n<li>☐ open</li>\n<li>☑ done</li>\n</ul>"),
        ("[ ] no item", "<p>[ ] no item</p>"),
    ],
)
def test_what_chats_write_is_shown_as_it_is_meant(text: str, html: str) -> None:
    assert render_markdown(text).strip() == html


def test_a_cell_breaks_its_line_and_its_code_does_not() -> None:
    html = render_markdown("| a |\n|---|\n| one<br>two |\n| `<br>` |")
    assert "<td>one<br>\ntwo</td>" in html
    assert "<code>&lt;br&gt;</code>" in html


def test_what_may_be_wide_takes_the_focus() -> None:
    code, table = render_markdown("```\nx\n```"), render_markdown("| a |\n|---|")
    assert 'tabindex="0"' in code
    assert 'aria-label="Code"' in code
    assert '<table tabindex="0">' in table
