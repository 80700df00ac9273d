"""What was stored in English, for readers of other languages."""

import pytest
from django.utils import translation

from annotator.web.stored_sentences import in_readers_language

KNOWN = ("the champion", "It predicts the same as %(rival)s on every prompt.", "%(file)s is missing.")


pytestmark = pytest.mark.usefixtures("german")


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("model.bin is missing.", "model.bin fehlt."),
        ("0.50 is missing.", "0,50 fehlt."),
        ("1,500 is missing.", "1.500 fehlt."),
        ("1500 is missing.", "1500 fehlt."),
        ("a (.*)\n$ is missing.", "a (.*)\n$ fehlt."),
        (
            "It predicts the same as the champion on every prompt.",
            "Es sagt bei jedem Prompt dasselbe vorher wie der Champion.",
        ),
        ("Somebody wrote this.", "Somebody wrote this."),
        ("", ""),
    ],
)
def test_a_known_sentence_is_translated_and_any_other_stays(stored: str, said: str) -> None:
    assert in_readers_language(stored, KNOWN) == said


def test_in_english_it_says_what_was_stored() -> None:
    with translation.override("en"):
        assert in_readers_language("1.50 is missing.", KNOWN) == "1.50 is missing."
