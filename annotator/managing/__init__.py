"""Projects and the people in them: every door that changes a project calls these functions.

`settings_check` checks a project's settings; `project_settings`, `archive` and `deletion` create, change and end it.
`members` manages who belongs to it and in which role, `staff` who may enter the admin for it, `pseudonyms` what its
people are called. `guidelines` publishes versions, `rubrics` holds the attribute sets that come with the product,
`languages` the language codes.
"""
