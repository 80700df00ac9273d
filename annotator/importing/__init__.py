"""Stage 1: files in, tasks out. The same file twice changes nothing; a bad row is reported and harms no other.

`sources` reads bytes into raw rows, `layouts` checks them, `batches` stores them in batches, and `withdrawal` takes a
whole import back.
"""

from annotator.importing.batches import ImportResult, TakenBack, import_rows
from annotator.importing.expansion_limits import UnreadableFile
from annotator.importing.withdrawal import AlreadyRated, Withdrawal, take_back, withdrawal_preview

__all__ = [
    "AlreadyRated",
    "ImportResult",
    "TakenBack",
    "UnreadableFile",
    "Withdrawal",
    "import_rows",
    "take_back",
    "withdrawal_preview",
]
