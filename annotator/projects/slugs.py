"""Proposes the name that a project has in addresses."""

from itertools import count

from django.utils.text import slugify

from annotator.models import Project

LONGEST = 50
_FALLBACK = "project"


def free_slug(name: str) -> str:
    """Returns a slug made from the name, with a number behind it where another project has it already."""
    wanted = slugify(name)[:LONGEST].strip("-_") or _FALLBACK
    if not Project.objects.filter(slug=wanted).exists():
        return wanted
    taken = set(Project.objects.filter(slug__startswith=wanted[: LONGEST - 8]).values_list("slug", flat=True))
    numbered = (f"{wanted[: LONGEST - 8]}-{number}" for number in count(2))
    return next(slug for slug in numbered if slug not in taken)
