"""Every string that annotators can read is translated, and what is compiled is what is written."""

import gettext
import inspect
import os
import re
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message

from annotator.launch import compiled_translations, prepare, translations
from annotator.managing.preset_rubrics import HELPSTEER2

pytestmark = pytest.mark.parametrize("po", translations.catalogues(), ids=lambda po: po.parent.parent.name)
HIDDEN = re.compile(r"""\bf(["']).*\{_\(""")
NAMED = re.compile(r"%\(\w+\)[a-z]|\{\w+\}")


def forms(text: str | tuple[str, ...] | list[str] | None) -> list[str]:
    return [text] if isinstance(text, str) else list(text or ())


def messages(stored: Catalog) -> list[Message]:
    return [message for message in stored if message.id]


@pytest.fixture(scope="module")
def wanted() -> set[str]:
    """What the sources hold; reading them all takes seconds."""
    return {str(message.id) for message in messages(translations.gathered())}


def test_every_string_is_translated(po: Path, wanted: set[str]) -> None:
    stored = translations.stored(po)
    known = {str(message.id) for message in messages(stored)}
    assert sorted(wanted - known) == [], "run `make messages`, and translate these"
    assert translations.untranslated(stored) == []


def test_nothing_is_left_over(po: Path, wanted: set[str]) -> None:
    stored = translations.stored(po)
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
    written = gettext.GNUTranslations(BytesIO(compiled_translations.compiled(translations.stored(po))))
    assert texts(compiled) == texts(written)


def test_a_fresh_clone_is_compiled_once_and_after_each_change(po: Path, tmp_path: Path) -> None:
    copy = tmp_path / po.relative_to(compiled_translations.LOCALE)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(po.read_bytes())
    (mo,) = compiled_translations.compile_translations(tmp_path)
    with mo.open("rb") as file:
        assert gettext.GNUTranslations(file).gettext("Tasks") != "Tasks"
    first = mo.stat().st_ino
    compiled_translations.compile_translations(tmp_path)
    assert mo.stat().st_ino == first
    os.utime(copy, (mo.stat().st_mtime + 1,) * 2)
    compiled_translations.compile_translations(tmp_path)
    assert mo.stat().st_ino != first
    assert {file.name for file in mo.parent.iterdir()} == {"django.mo", "django.po"}


def test_every_way_to_start_compiles_them(po: Path) -> None:
    """The image by its Dockerfile, `make run` and several machines by their preparation."""
    dockerfile = (translations.ROOT / "Dockerfile").read_text()
    assert dockerfile.index("COPY . .") < dockerfile.index("compiled_translations.py") < dockerfile.index("USER"), po
    assert "compile_translations(" in inspect.getsource(prepare.main)


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
