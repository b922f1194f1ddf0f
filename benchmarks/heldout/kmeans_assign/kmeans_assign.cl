// Assign every point to its nearest centroid. A point is a row of VECTORS times four coordinates.

__kernel void kmeans_assign(__global const float4 *restrict points,
                            __constant float4 *restrict centroids,
                            __global int *restrict nearest, __global float *restrict distance,
                            const int cluster_count)
{
    const int p = get_global_id(0);
    float4 x[VECTORS];
    for (int d = 0; d < VECTORS; ++d)
        x[d] = points[p * VECTORS + d];

    int best = -1;
    float best_distance = FLT_MAX;
    for (int c = 0; c < cluster_count; ++c) {
        float4 sum = 0.0f;
        for (int d = 0; d < VECTORS; ++d) {
            const float4 delta = x[d] - centroids[c * VECTORS + d];
            sum += delta * delta;
        }
        const float total = sum.x + sum.y + sum.z + sum.w;
        if (total < best_distance) {
            best_distance = total;
            best = c;
        }
    }
    nearest[p] = best;
    distance[p] = sqrt(best_distance);
}
