"""Releases freeze a project's data as a numbered folder that `datasets.load_dataset` loads, with a card about it.

`jobs` has the light worker make one, `rows` reads what is in it, `checks` look for what must not leave, `statistics`
and `card` describe it, `folder` writes the files, `archive` packs them, and `hub` takes them to the Hugging Face Hub.
"""
