"""How people and scripts prove who they are: logins and their limits, passwords, tokens."""
