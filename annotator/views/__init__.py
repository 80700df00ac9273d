"""The annotator's pages, a module a subject. Each page works without JavaScript; its access decorator stands on top."""
