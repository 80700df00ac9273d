"""What a task, its rubric and an answer about it may be at most.

Import, cutting, forms, drafts, REST and exports take these numbers from here, so that whatever one of them admits, the
others can carry. The last part follows from the rest. An operator can change the limits of files and bodies
(annotator/settings.py).
"""

# A task ----------------------------------------------------------------------------------------------------
MOST_RESPONSES = 26
"""The rating page calls responses by letters."""
MOST_MESSAGES = 1_000
"""Most turns of a conversation, unless IMPORT_MAX_MESSAGES says otherwise."""
MOST_PARTS = 1_000
"""Most parts of which one message may consist in a file."""
LONGEST_TEXT = 1_000_000
"""Most characters of a turn or a response, unless IMPORT_MAX_TEXT says otherwise."""
MOST_SEGMENTS = 1_000
"""Most segments of a task, of all its responses together."""
LONGEST_CUT_TEXT = 200_000
"""Most characters of a text that has more than one segment."""
MOST_ANNOTATORS = 25
MOST_AHEAD = 20
"""Tasks that one annotator's browser may hold before they are shown."""

# A rubric --------------------------------------------------------------------------------------------------
MOST_ATTRIBUTES, MOST_CHECKS = 20, 12
FEWEST_LEVELS, MOST_LEVELS = 2, 7
"""The levels that an attribute may have. Scores count them from 0."""
LONGEST_KEY, LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_LEVEL = 50, 60, 2_000, 300

# What a rater writes ---------------------------------------------------------------------------------------
LONGEST_JUSTIFICATION = 20_000
LONGEST_EDIT = 50_000
"""Most characters of a better version of a response."""
LONGEST_NOTE = 5_000
"""Most characters of a note, a comment or a reason."""
MOST_COMMENTS = 200
"""Most comments on the segments of one response."""
LONGEST_QUOTE = 2_000
"""Most characters of the text that a comment quotes."""
MOST_EVIDENCE, LONGEST_EVIDENCE = 20, 1_000
"""Most stretches of one response that its scores are based on, and the characters of one."""
LONGEST_WRITTEN = 200_000
"""Most characters of all that a rater writes about one task."""

# What follows for the rating page --------------------------------------------------------------------------
MOST_FIELDS = (
    MOST_SEGMENTS * (MOST_ATTRIBUTES + 2)  # a cell for each aspect, a comment, and the text that it quotes
    + MOST_RESPONSES * (MOST_ATTRIBUTES * (1 + MOST_CHECKS) + 9)  # levels, boxes, and what else is asked of a response
    + 50  # of the whole task
)
"""The fields of the largest form, which a browser without scripts sends one by one."""
LARGEST_FORM = 6_000_000 + 12 * MOST_RESPONSES * MOST_EVIDENCE * LONGEST_EVIDENCE
"""Bytes of the largest form: MOST_FIELDS with the longest names, twelve bytes a character written or quoted."""
LARGEST_DRAFT = 5 << 20
"""Bytes of the names and values of such a form as a draft keeps them, at four bytes a character."""
