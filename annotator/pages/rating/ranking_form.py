"""The fields of a ranking of three responses or more: one for the rank of each response, kept in drafts like others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from annotator.models import Response
from annotator.models.public_ids import response_number
from annotator.stages.consensus.rankings import Ranking, ranks_of, tiers_of_ranks


@dataclass(frozen=True)
class RankedResponse:
    """One response on the page: its letter there, and the bound field of its rank."""

    letter: str
    response: Response
    field: forms.BoundField


def rank_name(response: int) -> str:
    """Returns the name of the field for a response's rank; `response` is its public number."""
    return f"rank-{response}"


def rank_field(letter: str, responses: int) -> forms.TypedChoiceField:
    """Returns the field for the rank of one response. Equal ranks are a tie; nothing is ranked beforehand."""
    return forms.TypedChoiceField(
        choices=[("", "–"), *((rank, str(rank)) for rank in range(1, responses + 1))],
        coerce=int,
        empty_value=None,
        required=False,
        label=_("Rank of response %(letter)s") % {"letter": letter},
    )


def places(form: forms.Form, responses: Sequence[Response], letters: Sequence[str]) -> list[RankedResponse]:
    """Returns the responses that the form ranks, in the order in which they are shown."""
    named = (
        (letter, response, rank_name(response.public_id)) for letter, response in zip(letters, responses, strict=False)
    )
    return [RankedResponse(letter, response, form[name]) for letter, response, name in named if name in form.fields]


def refuse_unranked(form: forms.Form, responses: Sequence[Response], letters: Sequence[str]) -> None:
    """Adds one error for all responses without a rank, at the first of them."""
    missing = [place for place in places(form, responses, letters) if form.cleaned_data.get(place.field.name) is None]
    if missing:
        text = _("Rank every response. Not placed yet: %(letters)s")
        form.add_error(missing[0].field.name, text % {"letters": ", ".join(place.letter for place in missing)})


def ranking(data: dict[str, Any], responses: Sequence[Response]) -> list[list[int]] | None:
    """Returns the tiers of response ids that the cleaned fields say, or None where nothing is to be ranked."""
    ranks = {
        response.pk: data[rank_name(response.public_id)]
        for response in responses
        if rank_name(response.public_id) in data
    }
    return tiers_of_ranks(ranks) if ranks else None


def filled_ranks(stored: Ranking | None) -> dict[str, int]:
    """Returns the initial values of the fields for a stored ranking."""
    return {rank_name(response_number(response)): rank for response, rank in ranks_of(stored or []).items()}
