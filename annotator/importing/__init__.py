"""Stage 1: files in, tasks out. The same file twice changes nothing; a bad row is reported and harms no other.

`sources` reads bytes into raw rows, `layouts` checks them, this module writes them in batches.
"""

from annotator.importing.metering import UnreadableFile
from annotator.importing.writing import ImportResult, import_rows

__all__ = ["ImportResult", "UnreadableFile", "import_rows"]
