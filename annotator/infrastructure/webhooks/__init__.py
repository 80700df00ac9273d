"""Webhooks by Standard Webhooks (https://www.standardwebhooks.com): events of a project, posted to addresses of others.

`events` names the events, writes them and notices missing workers, `endpoints` is what managers do with their webhooks,
`deliveries` is the light worker's side. Events of tasks and labels are written by triggers, whichever door made the
change.
"""
