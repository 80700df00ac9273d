"""Writes tables in Markdown, for the cards of releases and models."""

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns the table; its cells are Markdown, so texts of people go through `line` first."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def line(text: str) -> str:
    """Returns the text as a cell or a heading can hold it."""
    return " ".join(text.split()).replace("|", "\\|")
