"""The page *Jobs*: what is under way, what it has come to, and what may be started."""
