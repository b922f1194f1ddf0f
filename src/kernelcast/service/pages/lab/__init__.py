"""The Lab: ask about a kernel that is typed in."""
