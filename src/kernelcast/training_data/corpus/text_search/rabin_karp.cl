// Looks for many patterns of 16 bytes at once: a hash rolls over the text, a filter of bits in
// local memory rejects nearly all places, the rest is looked up among the sorted hashes and
// compared byte by byte. A work-item counts the matches that begin in its 64 bytes.
#define PATTERN 16
#define CHUNK 64
#define FACTOR 16777619u
#define FILTER_WORDS 512

inline bool is_pattern(const uint hash, __global const uchar *window,
                       __global const uint *hashes, __global const uchar *patterns,
                       const int pattern_count)
{
    int low = 0;
    int high = pattern_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (hashes[middle] < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == pattern_count || hashes[low] != hash) {
        return false;
    }
    int i = 0;
    while (i < PATTERN && window[i] == patterns[low * PATTERN + i]) {
        ++i;
    }
    return i == PATTERN;
}

__kernel void rabin_karp(__global const uchar *restrict text, __global const uint *restrict hashes,
                         __global const uchar *restrict patterns,
                         __global const uint *restrict filter_source,
                         __global uint *restrict matches, const int pattern_count,
                         const uint last_factor)
{
    __local uint filter[FILTER_WORDS];
    for (int i = get_local_id(0); i < FILTER_WORDS; i += get_local_size(0)) {
        filter[i] = filter_source[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global const uchar *chunk = text + get_global_id(0) * CHUNK;
    uint hash = 0;
    for (int i = 0; i < PATTERN - 1; ++i) {
        hash = hash * FACTOR + chunk[i];
    }
    uint count = 0;
    for (int i = 0; i < CHUNK; ++i) {
        hash = hash * FACTOR + chunk[i + PATTERN - 1];
        const uint bit = hash >> 18;
        if (filter[bit >> 5] >> (bit & 31) & 1
            && is_pattern(hash, chunk + i, hashes, patterns, pattern_count)) {
            ++count;
        }
        hash -= chunk[i] * last_factor;
    }
    matches[get_global_id(0)] = count;
}
