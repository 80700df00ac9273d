"""Projects and the people in them: what every door calls before it changes one.

`changing` creates, changes and deletes projects, `members` says who belongs to one, `guidelines` publishes their
versions, and `rubrics` holds the attribute sets that come with the product.
"""
