"""What HelpSteer2 published about its own annotations, to stand beside a project's figures (arXiv 2406.08673)."""

from collections.abc import Mapping
from dataclasses import dataclass

from annotator.models import Attribute

ESCALATED = 0.205
"""The share of samples that went to five annotators (section 2.1)."""
DROPPED = 0.1
"""About the share of samples that the last filter drops (section 2.1)."""
RATERS = 3.41
"""The mean number of annotators of a sample (section 2.1)."""
PROMPT_CHARACTERS, RESPONSE_CHARACTERS = 713, 1493
"""Mean lengths in the data set."""
LEVELS = 5


@dataclass(frozen=True)
class Published:
    """An attribute's mean and standard deviation in the data set, its kappa at three stages, and its correlation.

    The correlation is Pearson's r with helpfulness, over the responses.
    """

    mean: float
    deviation: float
    initial: float
    improved: float
    filtered: float
    correlation: float


ATTRIBUTES: Mapping[str, Published] = {
    "helpfulness": Published(2.8655, 1.2703, 0.465, 0.706, 0.791, 1.0),
    "correctness": Published(2.9644, 1.2689, 0.472, 0.715, 0.793, 0.943),
    "coherence": Published(3.6393, 0.6491, 0.169, 0.387, 0.428, 0.498),
    "complexity": Published(1.7048, 0.6986, 0.293, 0.416, 0.427, 0.181),
    "verbosity": Published(1.9999, 0.7571, 0.342, 0.536, 0.548, 0.060),
}


def published(attribute: Attribute) -> Published | None:
    """Returns what is published of this attribute, or None: of another one, or on a scale of another length."""
    return ATTRIBUTES.get(attribute.key) if len(attribute.levels) == LEVELS else None
