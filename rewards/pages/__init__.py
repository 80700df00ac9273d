"""Pages of the machine half for a project's reviewers and managers."""
