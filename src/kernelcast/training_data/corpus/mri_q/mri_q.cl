// The matrix Q of non-Cartesian MRI reconstruction: for every voxel a sum over samples of k-space of
// the squared magnitude times a complex exponential. A sample is kx, ky, kz and the magnitude, in
// constant memory; long lists are split over several launches, which is why sums are accumulated.
#define TWO_PI 6.2831853f

__kernel void compute_q(const int samples,
                        __constant float4 *sample,
                        __global const float *restrict x,
                        __global const float *restrict y,
                        __global const float *restrict z,
                        __global float *restrict q_real,
                        __global float *restrict q_imaginary)
{
    const int voxel = get_global_id(0);
    const float vx = x[voxel];
    const float vy = y[voxel];
    const float vz = z[voxel];
    float real = q_real[voxel];
    float imaginary = q_imaginary[voxel];
    for (int k = 0; k < samples; ++k) {
        const float4 one = sample[k];
        const float angle = TWO_PI * (one.x * vx + one.y * vy + one.z * vz);
        real += one.w * cos(angle);
        imaginary += one.w * sin(angle);
    }
    q_real[voxel] = real;
    q_imaginary[voxel] = imaginary;
}
