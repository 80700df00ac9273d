"""Members, invitations and their work."""
