"""Compiles the translations: locale/*/LC_MESSAGES/django.po becomes django.mo, which is not in git.

Whatever starts, tests or packs the product calls this. It needs Babel alone, as it also runs while a wheel is built.
"""

import os
import tempfile
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALE = Path(__file__).resolve().parents[2] / "locale"


def compile_translations(locale: Path = LOCALE) -> list[Path]:
    """Compiles what is new or has changed; returns every compiled file. Several processes may do it at once."""
    written = sorted(locale.glob("*/LC_MESSAGES/*.po"))
    for po in written:
        mo = po.with_suffix(".mo")
        if not mo.exists() or mo.stat().st_mtime < po.stat().st_mtime:
            with po.open("rb") as source:
                content = compiled(read_po(source, locale=po.parent.parent.name))
            with tempfile.NamedTemporaryFile(dir=po.parent, delete=False) as file:
                file.write(content)
                os.fchmod(file.fileno(), 0o644)
            Path(file.name).replace(mo)
    return [po.with_suffix(".mo") for po in written]


def compiled(catalogue: Catalog) -> bytes:
    binary = BytesIO()
    write_mo(binary, catalogue)
    return binary.getvalue()


if __name__ == "__main__":
    compile_translations()
