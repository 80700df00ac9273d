"""One gold task of the qualification: the scales of the rating, and nothing else."""

from typing import Any

from annotator.forms.rating import RatingForm


class GoldForm(RatingForm):
    """Scores alone: experts give no confidence, safety or preference."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scales = {
            f"{attribute.key}-{response.public_id}" for attribute in self.attributes for response in self.responses
        }
        for name in set(self.fields) - scales - {"active_seconds"}:
            del self.fields[name]

    def scores(self) -> dict[int, dict[str, int]]:
        """The experts' scores, keyed by response id and attribute key, once the form is valid."""
        return {
            response.pk: {
                attribute.key: self.cleaned_data[f"{attribute.key}-{response.public_id}"]
                for attribute in self.attributes
            }
            for response in self.responses
        }
