"""`make messages`: gathers what people read on pages into locale/*/LC_MESSAGES/django.po, and compiles that.

Needs Babel; no GNU gettext.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po
from django.utils.translation import to_locale
from django.utils.translation.template import templatize

from annotator.launch.compiled_translations import LOCALE, compile_translations
from annotator.settings import LANGUAGE_CODE, LANGUAGES

ROOT = Path(__file__).resolve().parents[2]
CODE = ("annotator/**/*.py", "rewards/**/*.py")
KEYWORDS: dict[str, tuple[int | tuple[int, str], ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "pgettext": ((1, "c"), 2),
}
HEADER = "# What people read on pages. `make messages` keeps the list of strings; the translations are written by hand."


def main() -> None:
    for po in catalogues():
        if po.exists():
            catalogue = stored(po)
        else:
            po.parent.mkdir(parents=True)
            catalogue = Catalog(locale=po.parent.parent.name, project="Rewardloop", fuzzy=False)
        # No date and no line numbers: the file changes only when a string does.
        catalogue.update(gathered(), no_fuzzy_matching=True, update_creation_date=False)
        catalogue.header_comment = HEADER
        with po.open("wb") as file:
            write_po(file, catalogue, width=120, sort_by_file=True, include_lineno=False, ignore_obsolete=True)
        print(f"{po.relative_to(ROOT)}: {len(catalogue)} strings")
        for message in untranslated(catalogue):
            print(f"  not translated: {message}")
    compile_translations()


def catalogues() -> list[Path]:
    """Returns a file for each language that people may choose, except the one that the strings are written in."""
    codes = [code for code, _ in LANGUAGES if code != LANGUAGE_CODE]
    return [LOCALE / to_locale(code) / "LC_MESSAGES" / "django.po" for code in codes]


def sources() -> Iterator[Path]:
    """Yields the templates and modules with strings that people can see."""
    yield from sorted(path for pattern in ("templates/**/*.html", *CODE) for path in ROOT.glob(pattern))


def gathered() -> Catalog:
    """Returns a catalogue of every string that goes through gettext, without translations."""
    catalogue = Catalog(fuzzy=False)
    for path in sources():
        text = path.read_text()
        if path.suffix == ".html":
            # In brackets: outside of them the tokeniser takes a page's indentation for Python's, and fails.
            text = f"({templatize(text)})"
        strings = extract("python", BytesIO(text.encode()), keywords=KEYWORDS, comment_tags=["Translators:"])
        for _, message, comments, context in strings:
            place = (str(path.relative_to(ROOT)), 0)
            catalogue.add(message, locations=[place], auto_comments=comments, context=context)
    return catalogue


def stored(po: Path) -> Catalog:
    with po.open("rb") as file:
        return read_po(file, locale=po.parent.parent.name)


def untranslated(catalogue: Catalog) -> list[str]:
    # One with a plural is translated when all of its forms are.
    return [str(message.id) for message in catalogue if message.id and not (message.string and all(message.string))]


if __name__ == "__main__":
    main()
