kernel void ey(global float *ey, global const float *hz, int nx, int ny)
{
    int j = get_global_id(0), i = get_global_id(1);
    if (i > 0 && i < nx && j < ny)
        ey[i * ny + j] = ey[i * ny + j] - 0.5f * (hz[i * ny + j] - hz[(i - 1) * ny + j]);
}
