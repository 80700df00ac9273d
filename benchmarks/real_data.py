"""The folder of the real data sets, and Django's settings for benchmarks that use the product's rules without a server.

Imported before anything that holds models.
"""

import os
from pathlib import Path

import django

from annotator.launch.install import ROOT

DATA = Path(os.environ.get("SHARED_DATA", ROOT.parent / "shared" / "data"))

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
django.setup()
