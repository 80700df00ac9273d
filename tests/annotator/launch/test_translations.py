"""Every string that annotators can read is translated, and what is compiled is what is written."""

import gettext
import re
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message

from annotator.launch import translations
from annotator.projects.preset_rubrics import HELPSTEER2

pytestmark = pytest.mark.parametrize("po", translations.catalogues(), ids=lambda po: po.parent.parent.name)
HIDDEN = re.compile(r"""\bf(["']).*\{_\(""")
NAMED = re.compile(r"%\(\w+\)[a-z]|\{\w+\}")


def forms(text: str | tuple[str, ...] | list[str] | None) -> list[str]:
    return [text] if isinstance(text, str) else list(text or ())


def messages(stored: Catalog) -> list[Message]:
    return [message for message in stored if message.id]


def test_every_string_is_translated(po: Path) -> None:
    wanted = {str(message.id) for message in messages(translations.gathered())}
    stored = translations.stored(po)
    known = {str(message.id) for message in messages(stored)}
    assert sorted(wanted - known) == [], "run `make messages`, and translate these"
    assert translations.untranslated(stored) == []


def test_nothing_is_left_over(po: Path) -> None:
    stored = translations.stored(po)
    wanted = {str(message.id) for message in messages(translations.gathered())}
    assert [message.id for message in messages(stored) if str(message.id) not in wanted] == []
    assert list(stored.obsolete) == []


def test_nothing_is_fuzzy(po: Path) -> None:
    assert [message.id for message in messages(translations.stored(po)) if message.fuzzy] == []


def test_the_translations_have_the_placeholders_of_the_strings(po: Path) -> None:
    differing = [
        message.id
        for message in messages(translations.stored(po))
        for text in forms(message.string)
        # A singular may do without the number, as the English one does.
        if sorted(NAMED.findall(text)) not in [sorted(NAMED.findall(english)) for english in forms(message.id)]
    ]
    assert differing == []


def test_the_forms_of_the_translations_are_sound(po: Path) -> None:
    """Babel's own checks: plural forms, and formats that Python can fill."""
    assert [(message.id, errors) for message, errors in translations.stored(po).check()] == []


def test_what_is_compiled_is_what_is_written(po: Path) -> None:
    with po.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    written = gettext.GNUTranslations(BytesIO(translations.compiled(translations.stored(po))))
    assert texts(compiled) == texts(written), "run `make messages`"


def texts(translations: gettext.GNUTranslations) -> dict[object, str]:
    """The header tells who compiled it, which is no translation."""
    return {key: text for key, text in vars(translations)["_catalog"].items() if key}


def test_the_rubric_is_translated(po: Path) -> None:
    known = {str(message.id) for message in messages(translations.stored(po))}
    for attribute in HELPSTEER2.attributes:
        assert {
            attribute.name,
            attribute.description,
            *attribute.levels,
            *(text for _, text in attribute.checks),
        } <= known


def test_no_string_hides_in_an_f_string(po: Path) -> None:
    """Babel reads no call in there, so nobody would translate it."""
    files = [file for pattern in translations.CODE for file in translations.ROOT.glob(pattern)]
    hidden = [
        f"{file}:{n}"
        for file in files
        for n, line in enumerate(file.read_text().splitlines(), 1)
        if HIDDEN.search(line)
    ]
    assert hidden == [], po
