"""What was predicted beside what was measured, gathered for people to look at."""
