"""Answers the pages' Lab about pasted code, in child processes; nothing of it runs."""
