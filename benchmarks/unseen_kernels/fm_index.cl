// Counts occurrences of reads in a genome: backward search in an FM-index of blocks of 64 bases.
typedef struct { uint before[4]; ulong low, high; } block;

uint rank(global const block *index, uint base, uint place)
{
    block b = index[place >> 6];
    ulong same = (base & 1 ? b.low : ~b.low) & (base & 2 ? b.high : ~b.high);
    return b.before[base] + popcount(same & ((1UL << (place & 63)) - 1));
}

kernel void count_reads(global const block *index, constant uint *firsts, global const uint *reads,
                        global uint *counts, uint length)
{
    uint read = reads[get_global_id(0)], low = 0, high = length;
    for (int i = 0; i < 16 && low < high; i++) {
        uint base = read >> 2 * i & 3;
        low = firsts[base] + rank(index, base, low);
        high = firsts[base] + rank(index, base, high);
    }
    counts[get_global_id(0)] = high - low;
}
