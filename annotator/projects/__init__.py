"""Projects and the people in them: what every door calls before it changes one.

`settings_check` says which settings a project may have; `project_settings`, `archive` and `deletion` are its life.
`members` says who belongs to one and in which role, `staff` who may enter the admin for it, `pseudonyms` what its
people are called. `guidelines` publishes versions, `rubrics` holds the attribute sets that come with the product,
`languages` the codes.
"""
