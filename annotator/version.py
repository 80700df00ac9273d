"""The version, read from `rewardloop/version.py` as a file: to import the client would cost every process of ours."""

import runpy
from pathlib import Path

VERSION: str = runpy.run_path(str(Path(__file__).parents[1] / "rewardloop" / "version.py"))["VERSION"]
