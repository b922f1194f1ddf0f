// The steps of a multigrid solver for Poisson's equation: residual, norms, restriction to the
// coarser grid, smoothing and interpolation to the finer one. Grids have a layer of ghost points on
// every side, unless said otherwise; a work-group of resid and interp takes a row and keeps the sums
// over neighbouring rows, which its points share, in local memory.
#ifdef USE_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifndef REAL
#define REAL float
#endif

// r = v - A u, where A weighs the point, the edges and the corners of the cube around it (the faces'
// weight is zero). n1 and n2 are lengths of rows and columns, ghosts included.
__kernel void resid(__global const REAL *restrict u,
                    __global const REAL *restrict v,
                    __global REAL *restrict r,
                    __local REAL *faces,
                    __local REAL *edges,
                    const int n1,
                    const int n2,
                    const REAL a0,
                    const REAL a2,
                    const REAL a3)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const int layer = n1 * n2;
    const int row = (get_group_id(2) + 1) * layer + (get_group_id(1) + 1) * n1;
    for (int i = lane; i < n1; i += lanes) {
        __global const REAL *here = u + row + i;
        faces[i] = here[-n1] + here[n1] + here[-layer] + here[layer];
        edges[i] = here[-layer - n1] + here[-layer + n1] + here[layer - n1] + here[layer + n1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane + 1; i < n1 - 1; i += lanes) {
        r[row + i] = v[row + i] - a0 * u[row + i]
                   - a2 * (edges[i] + faces[i - 1] + faces[i + 1])
                   - a3 * (edges[i - 1] + edges[i + 1]);
    }
}

#define ROWS 8

// Sum of squares and greatest magnitude over ROWS rows a work-group.
__kernel void norm2u3(__global const REAL *restrict r,
                      __global REAL *restrict sums,
                      __global REAL *restrict greatest,
                      __local REAL *local_sums,
                      __local REAL *local_greatest,
                      const int n1,
                      const int n2)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    REAL sum = 0;
    REAL most = 0;
    for (int k = 0; k < ROWS; ++k) {
        const int number = get_group_id(0) * ROWS + k;
        const int row = (number / (n2 - 2) + 1) * n1 * n2 + (number % (n2 - 2) + 1) * n1;
        for (int i = lane + 1; i < n1 - 1; i += lanes) {
            const REAL value = r[row + i];
            sum += value * value;
            most = fmax(most, fabs(value));
        }
    }
    local_sums[lane] = sum;
    local_greatest[lane] = most;
    for (int reach = lanes / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            local_sums[lane] += local_sums[lane + reach];
            local_greatest[lane] = fmax(local_greatest[lane], local_greatest[lane + reach]);
        }
    }
    if (lane == 0) {
        sums[get_group_id(0)] = local_sums[0];
        greatest[get_group_id(0)] = local_greatest[0];
    }
}

// Restriction: a point of the coarse grid s is a weighted mean of 27 points of the fine grid r. m1
// and m2 are the coarse grid's lengths, n1 and n2 the fine grid's.
__kernel void rprj3(__global const REAL *restrict r,
                    __global REAL *restrict s,
                    const int n1,
                    const int n2,
                    const int m1,
                    const int m2)
{
    const int j1 = get_global_id(0) + 1;
    const int j2 = get_global_id(1) + 1;
    const int j3 = get_global_id(2) + 1;
    const int layer = n1 * n2;
    __global const REAL *centre = r + 2 * j3 * layer + 2 * j2 * n1 + 2 * j1;
    REAL faces[3];
    REAL edges[3];
    for (int k = 0; k < 3; ++k) {
        __global const REAL *here = centre + k - 1;
        faces[k] = here[-n1] + here[n1] + here[-layer] + here[layer];
        edges[k] = here[-layer - n1] + here[-layer + n1] + here[layer - n1] + here[layer + n1];
    }
    s[(j3 * m2 + j2) * m1 + j1] =
        (REAL)0.5 * centre[0] + (REAL)0.25 * (centre[-1] + centre[1] + faces[1])
        + (REAL)0.125 * (faces[0] + faces[2] + edges[1]) + (REAL)0.0625 * (edges[0] + edges[2]);
}

// Smoothing: u gains a weighted sum of the residual at the point, its faces and its edges.
__kernel void psinv(__global const REAL *restrict r,
                    __global REAL *restrict u,
                    const int n1,
                    const int n2,
                    const REAL c0,
                    const REAL c1,
                    const REAL c2)
{
    const int layer = n1 * n2;
    const int i = (get_global_id(2) + 1) * layer + (get_global_id(1) + 1) * n1 + get_global_id(0)
                + 1;
    __global const REAL *here = r + i;
    const REAL faces =
        here[-1] + here[1] + here[-n1] + here[n1] + here[-layer] + here[layer];
    const REAL edges =
        here[-n1 - 1] + here[-n1 + 1] + here[n1 - 1] + here[n1 + 1]
        + here[-layer - 1] + here[-layer + 1] + here[layer - 1] + here[layer + 1]
        + here[-layer - n1] + here[-layer + n1] + here[layer - n1] + here[layer + n1];
    u[i] += c0 * here[0] + c1 * faces + c2 * edges;
}

// Interpolation: the coarse grid z is added to the fine grid u. A cell between eight coarse points
// adds to eight fine ones; the fine grid has twice as many points as the coarse one has cells.
__kernel void interp(__global const REAL *restrict z,
                     __global REAL *restrict u,
                     __local REAL *along_y,
                     __local REAL *along_z,
                     __local REAL *diagonal,
                     const int cells_x,
                     const int cells_y)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const int m1 = cells_x + 1;
    const int coarse_layer = m1 * (cells_y + 1);
    const int n1 = 2 * cells_x;
    const int fine_layer = n1 * 2 * cells_y;
    __global const REAL *coarse = z + get_group_id(2) * coarse_layer + get_group_id(1) * m1;
    __global REAL *fine = u + 2 * get_group_id(2) * fine_layer + 2 * get_group_id(1) * n1;
    for (int i = lane; i < m1; i += lanes) {
        const REAL here = coarse[i];
        const REAL upper = coarse[i + m1];
        along_y[i] = upper + here;
        along_z[i] = coarse[i + coarse_layer] + here;
        diagonal[i] = along_y[i] + coarse[i + coarse_layer] + coarse[i + coarse_layer + m1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < cells_x; i += lanes) {
        __global REAL *point = fine + 2 * i;
        point[0] += coarse[i];
        point[1] += (REAL)0.5 * (coarse[i] + coarse[i + 1]);
        point[n1] += (REAL)0.5 * along_y[i];
        point[n1 + 1] += (REAL)0.25 * (along_y[i] + along_y[i + 1]);
        point[fine_layer] += (REAL)0.5 * along_z[i];
        point[fine_layer + 1] += (REAL)0.25 * (along_z[i] + along_z[i + 1]);
        point[fine_layer + n1] += (REAL)0.25 * diagonal[i];
        point[fine_layer + n1 + 1] += (REAL)0.125 * (diagonal[i] + diagonal[i + 1]);
    }
}
