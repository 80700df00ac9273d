"""Webhooks by Standard Webhooks (https://www.standardwebhooks.com): events of a project, posted to addresses of others.

`events` names the events and writes them, `endpoints` is what managers do with their webhooks, `addresses` says where
may be posted to, `exchange` posts, `deliveries` is the light worker's side, and `outages` notices missing workers.
Events of tasks and labels are written by triggers, whichever door made the change.
"""
