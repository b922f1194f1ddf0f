/* Constant false alarm rate: a cell of a range-Doppler map against the mean of a ring around it. */
__kernel void cfar(__global const float2 *map, __global uchar *hits, int ranges, int dopplers, int guard,
                   int reach, float factor)
{
    int r = get_global_id(0), d = get_global_id(1), cells = 0;
    float noise = 0.0f;
    for (int j = -reach; j <= reach; j++) {
        int row = (d + j + dopplers) % dopplers;
        for (int i = -reach; i <= reach; i++)
            if ((abs(i) > guard || abs(j) > guard) && r + i >= 0 && r + i < ranges) {
                float2 s = map[row * ranges + r + i];
                noise += s.x * s.x + s.y * s.y;
                cells++;
            }
    }
    float2 s = map[d * ranges + r];
    hits[d * ranges + r] = (s.x * s.x + s.y * s.y) * cells > factor * noise;
}
