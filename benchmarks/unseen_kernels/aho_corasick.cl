/* Counts occurrences of many words with an automaton; overlapping pieces of text per work-item. */
__kernel void scan_text(__global const uchar *text, __global const int *next, __global const uchar *is_end,
                        __global int *hits, uint piece, uint overlap, uint length)
{
    uint begin = (uint)get_global_id(0) * piece;
    uint end = min(begin + piece + overlap, length);
    int state = 0, count = 0;
    for (uint i = begin; i < end; i++) {
        state = next[state * 32 + (text[i] & 31)];
        count += is_end[state];
    }
    hits[get_global_id(0)] = count;
}
