"""The page *Accuracy*: predicted against measured times, and why some are far apart."""
