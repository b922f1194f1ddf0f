/* Latency of dependent loads over the size of an array, without OpenCL.

   pointer_chase LARGEST_BYTES [POINTS_PER_OCTAVE]

   Prints one line per size: bytes, and nanoseconds per load (the shortest of several runs). The
   array is a random cycle of pointers, one per 64-byte line, in large pages where there are any.
   An independent check of kernelcast's random walk: pointers instead of indices, xorshift instead
   of numpy, Sattolo's shuffle instead of a linked permutation. */

#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, LARGE_PAGE = 2 << 20, RUNS = 9, UNROLLED = 16 };

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void **link_cycle(char *memory, size_t lines)
{
    uint32_t *next = malloc(lines * sizeof *next);
    if (!next)
        exit(1);
    for (size_t i = 0; i < lines; ++i)
        next[i] = (uint32_t)i;
    for (size_t i = 0; i + 1 < lines; ++i) { /* Sattolo: the partner is never the element itself */
        size_t j = i + 1 + draw() % (lines - 1 - i);
        uint32_t kept = next[i];
        next[i] = next[j];
        next[j] = kept;
    }
    for (size_t i = 0; i < lines; ++i)
        *(void **)(memory + LINE * i) = memory + LINE * (size_t)next[i];
    free(next);
    return (void **)memory;
}

static void **chase(void **at, size_t steps)
{
    for (size_t i = 0; i < steps; i += UNROLLED) {
#define STEP at = (void **)*at;
        STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP
    }
    return at;
}

int main(int count, char **words)
{
    if (count < 2) {
        fprintf(stderr, "usage: pointer_chase LARGEST_BYTES [POINTS_PER_OCTAVE]\n");
        return 2;
    }
    double largest = atof(words[1]);
    double per_octave = count > 2 ? atof(words[2]) : 4;
    size_t room = ((size_t)largest / LARGE_PAGE + 1) * LARGE_PAGE;
    char *memory = aligned_alloc(LARGE_PAGE, room);
    if (!memory)
        return 1;
#ifdef MADV_HUGEPAGE
    madvise(memory, room, MADV_HUGEPAGE);
#endif
    for (double octave = 12; octave <= log2(largest) + 1e-9; octave += 1 / per_octave) {
        size_t lines = (size_t)(pow(2, octave) / LINE + 0.5);
        void **at = link_cycle(memory, lines);
        double best_s = 1e9;
        at = chase(at, lines < 2000000 ? lines : 2000000); /* fills the caches */
        double start_s = now_s();
        at = chase(at, 20000);
        double step_s = (now_s() - start_s) / 20000;
        size_t steps = (size_t)(1e-3 / step_s) / UNROLLED * UNROLLED + UNROLLED;
        for (int run = 0; run < RUNS; ++run) {
            start_s = now_s();
            at = chase(at, steps);
            double spent_s = (now_s() - start_s) / (double)steps;
            if (spent_s < best_s)
                best_s = spent_s;
        }
        if (!at) /* never: keeps the loads */
            return 1;
        printf("%zu %.4f\n", lines * LINE, best_s * 1e9);
        fflush(stdout);
    }
    return 0;
}
