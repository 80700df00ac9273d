"""The pages, one module for each subject. Each works without JavaScript and has its access decorator on top."""
