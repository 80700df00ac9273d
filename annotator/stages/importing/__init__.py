"""Stage 1 reads files and makes tasks. Importing a file twice changes nothing, and a bad row affects no other row.

`sources` reads bytes into raw rows, `mappings` brings rows of other columns into our layout, `layouts` checks the rows,
`batches` stores them, `jobs` does all of it in the light worker, and `withdrawal` takes a whole import back.
"""

from annotator.stages.importing.batches import import_rows
from annotator.stages.importing.expansion_limits import UnreadableFile
from annotator.stages.importing.results import ImportResult, TakenBack
from annotator.stages.importing.withdrawal import Withdrawal, take_back, withdrawal_preview
