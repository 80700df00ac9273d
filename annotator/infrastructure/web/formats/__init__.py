"""How dates and times are written: one form for each language, that nobody can misread, with the zone of a time.

Django looks here first (FORMAT_MODULE_PATH). The short forms are the same as the long ones.
"""
