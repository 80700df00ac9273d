"""The folder of the real data sets."""

import os
from pathlib import Path

from annotator.launch.install import ROOT

DATA = Path(os.environ.get("SHARED_DATA", ROOT.parent / "shared" / "data"))
