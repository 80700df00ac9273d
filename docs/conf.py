"""The documentation site: `make check` builds it into var/docs, and a warning is an error."""

project = "Rewardloop"
author = "the authors of Rewardloop"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}

html_theme = "furo"
html_title = "Rewardloop"
html_favicon = "../static/img/mark.svg"
html_show_copyright = False
html_copy_source = False

# A link to a heading of another page, like glossary.md#champion; a heading that is gone is a warning.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]

# The docstrings are plain English with `code` in single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 80
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
