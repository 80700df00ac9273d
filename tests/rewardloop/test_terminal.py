"""Texts are other people's, and nothing in them reaches the terminal but words."""

import io
import sys

import pytest

from rewardloop import Progress
from rewardloop.answers import RefusedRow
from rewardloop.command_line.terminal import Terminal, clean, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ümläut, 漢字", "plain text, ümläut, 漢字"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2J\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]8;;http://evil.example\x07link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title without an end", ""),
        ("\x1bPq#0\x1b\\after", "after"),
        ("back\x08\x08space\r\nbell\x07\x7f", "backspace\nbell"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("lone \udcff surrogate", "lone  surrogate"),
        ("[bold]markup[/bold] :smile:", "[bold]markup[/bold] :smile:"),
    ],
)
def test_no_text_controls_the_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_a_cell_is_one_short_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert len(one_line("x" * 500)) == 80


class Tty(io.StringIO):
    """What a terminal is to a program."""

    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_for_people_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Terminal().bar() as nothing:
        assert nothing is None
    screen = Tty()
    monkeypatch.setattr(sys, "stderr", screen)
    with Terminal().bar() as on_progress:
        assert on_progress
        on_progress(Progress("importing", 1_500, 3_000))
        on_progress(Progress("importing", 3_000, 3_000))
    assert "importing" in screen.getvalue()
    assert "3,000 of 3,000" in screen.getvalue()


def test_a_table_keeps_each_row_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    row = RefusedRow(line=1, error="x")
    Terminal().rows(["task", "text", "more"], [(row, ["\x1b[2Jid", "[red]" + "a\n" * 60, "y" * 79])])
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["task", "text", "more"]
    assert line.split()[:3] == ["id", "[red]a", "a"]
    assert line.rstrip().endswith("y" * 79)
