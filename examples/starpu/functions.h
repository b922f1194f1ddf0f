/* The CPU implementations. Each works on a stretch of its outer loop, so that a stretch can be timed. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#define DEGREE 64

/* Elements begin to end. */
void horner_range(const float *x, float *y, int begin, int end);
/* Rows begin to end of n. */
void matmul_range(const float *a, const float *b, float *c, int n, int begin, int end);
void stencil_range(const float *in, float *out, int n, int begin, int end);

#endif
