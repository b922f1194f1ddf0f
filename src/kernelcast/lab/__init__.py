"""Answers the pages' Lab about code that somebody types, in child processes; nothing of it runs."""
