"""Takes a step of Viterbi's algorithm for a hidden Markov model."""
