"""Finds a project's tasks by their words and by what became of them, for reviewers and managers.

`word_index` keeps the index of words in line with the texts, `criteria` selects tasks, `listing` shows them in a list.
"""
