/* Communities: a vertex takes the commonest of its neighbours' labels, counted pair by pair. */
__kernel void propagate(__global const int *rows, __global const int *ends, __global const int *labels,
                        __global int *chosen)
{
    int v = get_global_id(0), best = labels[v], most = 0;
    for (int e = rows[v]; e < rows[v + 1]; e++) {
        int label = labels[ends[e]], same = 0;
        for (int f = rows[v]; f < rows[v + 1]; f++)
            same += labels[ends[f]] == label;
        if (same > most || (same == most && label < best)) {
            most = same;
            best = label;
        }
    }
    chosen[v] = best;
}
