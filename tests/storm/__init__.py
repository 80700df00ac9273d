"""The product under annotators who never rest, while whatever serves them is killed.

`servers` are what runs and can be killed, `simulated_annotators` who rate, `journal` what they sent and were told,
`faults` what happens to the servers meanwhile, `oracle` the protocol's rules once more, written for these tests alone.
"""
