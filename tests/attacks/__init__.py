"""What strangers, annotators, full disks and hostile files try, against the product as it runs.

Each test holds one attack, and the limit or rule that answers it.
"""
