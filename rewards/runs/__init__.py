"""Training runs: settings, requests, and the way from snapshot to verdict."""
