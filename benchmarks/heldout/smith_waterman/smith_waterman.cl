// Best local alignment score of one query with every sequence of a database (affine gaps).

__kernel void smith_waterman(__global const uchar *residues, __global const int *offsets,
                             __constant uchar *query, __constant char *substitution,
                             __global int *scores, const int gap_open, const int gap_extend)
{
    const int sequence = get_global_id(0);
    const int first = offsets[sequence];
    const int last = offsets[sequence + 1];

    short h[QUERY];
    short e[QUERY];
    for (int q = 0; q < QUERY; ++q) {
        h[q] = 0;
        e[q] = 0;
    }

    int best = 0;
    for (int r = first; r < last; ++r) {
        __constant char *row = substitution + residues[r] * 20;
        int diagonal = 0;
        int left = 0;
        int f = 0;
        for (int q = 0; q < QUERY; ++q) {
            const int gap_in_query = max(e[q] - gap_extend, h[q] - gap_open);
            f = max(f - gap_extend, left - gap_open);
            int score = diagonal + row[query[q]];
            score = max(max(score, 0), max(gap_in_query, f));
            diagonal = h[q];
            e[q] = gap_in_query;
            h[q] = score;
            left = score;
            best = max(best, score);
        }
    }
    scores[sequence] = best;
}
