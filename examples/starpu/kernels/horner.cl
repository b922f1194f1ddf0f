/* A polynomial of each element, by Horner's rule: arithmetic, hardly any memory. */
__kernel void horner(__global const float *x, __global float *y, const int degree)
{
    const size_t i = get_global_id(0);
    const float at = x[i];
    float value = 1.0f;
    for (int k = 0; k < degree; ++k)
        value = value * at + 0.5f;
    y[i] = value;
}
