// A step of Viterbi's algorithm in logarithms: the best predecessor of every state, given an
// observation. A work-group has a state; its work-items share the predecessors and find the best
// by a tree in local memory. Equal ones: the first counts.
__kernel void viterbi_one_step(__global float *restrict new_likelihood,
                               __global int *restrict path,
                               __global const float *restrict old_likelihood,
                               __global const float *restrict transition,
                               __global const float *restrict emission,
                               __local float *best_value,
                               __local int *best_index,
                               const int states,
                               const int step,
                               const int observation)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);

    for (int state = get_group_id(0); state < states; state += get_num_groups(0)) {
        __global const float *row = transition + (size_t)state * states;
        float value = -INFINITY;
        int index = -1;
        for (int k = lane; k < states; k += lanes) {
            const float candidate = old_likelihood[k] + row[k];
            if (candidate > value) {
                value = candidate;
                index = k;
            }
        }
        best_value[lane] = value;
        best_index[lane] = index;
        barrier(CLK_LOCAL_MEM_FENCE);

        for (int distance = lanes / 2; distance > 0; distance /= 2) {
            if (lane < distance) {
                const float other = best_value[lane + distance];
                const int other_index = best_index[lane + distance];
                const bool is_first =
                    other == best_value[lane] && other_index < best_index[lane];
                if (other > best_value[lane] || is_first) {
                    best_value[lane] = other;
                    best_index[lane] = other_index;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) {
            new_likelihood[state] = best_value[0] + emission[observation * states + state];
            path[step * states + state] = best_index[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
