"""Projects and the people in them: what every door calls before it changes one.

`checking` says which settings a project may have; `changing`, `archiving` and `deleting` are its life. `members` says
who belongs to one and in which role, `staff` who may enter the admin for it, `pseudonyms` what its people are called.
`guidelines` publishes versions, `rubrics` holds the attribute sets that come with the product, `languages` the codes.
"""
