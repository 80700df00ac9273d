"""Aligns language models with a project's judged responses, and judges them before they are offered.

`policy_runs` starts a run, `alignment` takes it from snapshot to judgement; `rows` makes of a snapshot what is
learnt, `judging` has the champion compare the policy with its base, `offers` decides, `policy_registry` and
`downloads` keep the result.
"""
