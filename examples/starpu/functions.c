#include "functions.h"

void horner_range(const float *x, float *y, int begin, int end)
{
    for (int i = begin; i < end; ++i) {
        float value = 1.0f;
        for (int k = 0; k < DEGREE; ++k)
            value = value * x[i] + 0.5f;
        y[i] = value;
    }
}

void matmul_range(const float *a, const float *b, float *c, int n, int begin, int end)
{
    for (int row = begin; row < end; ++row) {
        float *restrict to = c + (long)row * n;
        for (int column = 0; column < n; ++column)
            to[column] = 0.0f;
        for (int k = 0; k < n; ++k) {
            const float factor = a[(long)row * n + k];
            const float *restrict from = b + (long)k * n;
            for (int column = 0; column < n; ++column)
                to[column] += factor * from[column];
        }
    }
}

void stencil_range(const float *in, float *out, int n, int begin, int end)
{
    for (int y = begin; y < end; ++y) {
        const float *restrict at = in + (long)y * n;
        float *restrict to = out + (long)y * n;
        for (int x = 0; x < n; ++x)
            to[x] = at[x];
        if (y < 4 || y >= n - 4)
            continue;
        for (int x = 4; x < n - 4; ++x) {
            float value = 0.2f * at[x];
            for (int r = 1; r <= 4; ++r)
                value += 0.05f * (at[x - r] + at[x + r] + at[x - r * n] + at[x + r * n]);
            to[x] = value;
        }
    }
}
