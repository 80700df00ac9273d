"""Measures annotators' work beyond agreement (leaning, scatter, hurry, sameness, sides), for people to judge.

`work_arrays` reads the annotations, `rater_effects` and `patterns` compute the statistics, `measurements` puts them
together by annotator, `flags` picks what stands out. `assessment` is the stage that stores all this, `findings` puts it
into words.
"""
