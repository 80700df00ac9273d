"""Work in the background: messages to the workers, their heartbeats, and failures kept project by project."""
