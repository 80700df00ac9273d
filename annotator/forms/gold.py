"""The form for one gold task of the qualification."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotator.forms.rating import RatingForm


class GoldForm(RatingForm):
    """The rating form with nothing but its scales: experts give no confidence, safety or preference."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scales = {
            f"{attribute.key}-{response.public_id}" for attribute in self.attributes for response in self.responses
        }
        for name in set(self.fields) - scales - {"active_seconds"}:
            del self.fields[name]

    def segments(self) -> dict[int, Sequence[Mapping[str, int | None]]]:
        """Returns a valid form's scores of segments by response id; nothing where whole responses alone are rated."""
        return {table.response.pk: table.scores() for table in self.tables}

    def scores(self) -> dict[int, dict[str, int]]:
        """Returns a valid form's scores, keyed by response id and attribute key."""
        return {
            response.pk: {
                attribute.key: self.cleaned_data[f"{attribute.key}-{response.public_id}"]
                for attribute in self.attributes
            }
            for response in self.responses
        }
