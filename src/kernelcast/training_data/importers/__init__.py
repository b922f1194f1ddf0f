"""Other people's measurements as observations of ours."""
