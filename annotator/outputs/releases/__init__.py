"""Releases freeze a project's data as a numbered folder that `datasets.load_dataset` loads, with a card about it.

`release_jobs` has the light worker make one, `release_rows` reads what is in it, `checks` look for what must not
leave, `statistics` and `card` describe it, `folder` writes and packs the files, and `hub_pushes` takes
them to the Hugging Face Hub.
"""
