// Coulomb potential of point charges on one slice of a lattice, summed directly. A work-item
// computes POINTS lattice points that lie one work-group's width apart, so that stores coalesce;
// every work-item reads the same atom at the same time from constant memory. An atom is x, y, the
// squared distance from the slice, and the charge.
#define POINTS 4

__kernel void cp(const int atoms,
                 const int pitch,
                 const float spacing,
                 __global float *restrict energy,
                 __constant float4 *atom)
{
    const int lanes = get_local_size(0);
    const int column = get_group_id(0) * lanes * POINTS + get_local_id(0);
    const int row = get_global_id(1);
    const float x = spacing * column;
    const float y = spacing * row;
    const float step = spacing * lanes;

    float sum0 = 0.0f;
    float sum1 = 0.0f;
    float sum2 = 0.0f;
    float sum3 = 0.0f;
    for (int n = 0; n < atoms; ++n) {
        const float4 one = atom[n];
        const float dy = y - one.y;
        const float beside = dy * dy + one.z;
        const float dx0 = x - one.x;
        const float dx1 = dx0 + step;
        const float dx2 = dx1 + step;
        const float dx3 = dx2 + step;
        sum0 += one.w * rsqrt(dx0 * dx0 + beside);
        sum1 += one.w * rsqrt(dx1 * dx1 + beside);
        sum2 += one.w * rsqrt(dx2 * dx2 + beside);
        sum3 += one.w * rsqrt(dx3 * dx3 + beside);
    }
    __global float *point = energy + row * pitch + column;
    point[0] += sum0;
    point[lanes] += sum1;
    point[2 * lanes] += sum2;
    point[3 * lanes] += sum3;
}
