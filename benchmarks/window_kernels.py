"""Two- and three-dimensional kernels for `window_shapes.py`, each with its index space."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKernel:
    """A kernel with its launch; buffers come first among its arguments, then integers."""

    name: str
    source: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    buffer_bytes: tuple[int, ...]
    written: int
    """Index of the buffer that it writes."""
    scalars: tuple[int, ...] = ()


_N = 4096
_PLANE = 4 * _N * _N
_CUBE = 384
_EDGE = "if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;"

KERNELS = (
    WindowKernel(
        name="convolution_3x3",
        source=f"""kernel void convolution_3x3(global const float *a, global float *b,
                                    constant float *c, int w, int h) {{
            int x = get_global_id(0), y = get_global_id(1);
            {_EDGE}
            float sum = 0;
            for (int j = -1; j <= 1; ++j)
                for (int i = -1; i <= 1; ++i)
                    sum += a[(y + j) * w + x + i] * c[(j + 1) * 3 + i + 1];
            b[y * w + x] = sum; }}""",
        global_size=(4 * _N, _N), local_size=(32, 8),
        buffer_bytes=(4 * _PLANE, 4 * _PLANE, 64), written=1, scalars=(4 * _N, _N),
    ),
    WindowKernel(
        name="fdtd_2d",
        source=f"""kernel void fdtd_2d(global const float *ez, global const float *hx,
                            global const float *hy, global float *out, int w, int h) {{
            int x = get_global_id(0), y = get_global_id(1);
            {_EDGE}
            int i = y * w + x;
            out[i] = ez[i] + 0.5f * (hy[i] - hy[i - 1] - hx[i] + hx[i - w]); }}""",
        global_size=(4 * _N, _N), local_size=(32, 8), buffer_bytes=(4 * _PLANE,) * 4, written=3,
        scalars=(4 * _N, _N),
    ),
    WindowKernel(
        name="five_point",
        source=f"""kernel void five_point(global const float *a, global float *b, int w,
                               int h) {{
            int x = get_global_id(0), y = get_global_id(1);
            {_EDGE}
            int i = y * w + x;
            b[i] = 0.2f * (a[i] + a[i - 1] + a[i + 1] + a[i - w] + a[i + w]); }}""",
        global_size=(4 * _N, _N), local_size=(16, 16), buffer_bytes=(4 * _PLANE,) * 2, written=1,
        scalars=(4 * _N, _N),
    ),
    WindowKernel(
        name="wave_2d",
        source=f"""kernel void wave_2d(global const double *now, global const double *before,
                            global double *next, int w, int h) {{
            int x = get_global_id(0), y = get_global_id(1);
            {_EDGE}
            int i = y * get_global_size(0) + x;
            next[i] = 2 * now[i] - before[i]
                + 0.1 * (now[i - 1] + now[i + 1] + now[i - w] + now[i + w] - 4 * now[i]); }}""",
        global_size=(_N, _N), local_size=(32, 8), buffer_bytes=(4 * _PLANE,) * 3, written=2,
        scalars=(_N, _N),
    ),
    WindowKernel(
        name="transpose_tiled",
        source="""kernel void transpose_tiled(global const float *a, global float *b,
                                    int w, int h) {
            local float tile[16][17];
            int lx = get_local_id(0), ly = get_local_id(1);
            tile[ly][lx] = a[get_global_id(1) * w + get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            b[(get_group_id(0) * 16 + ly) * h + get_group_id(1) * 16 + lx] = tile[lx][ly]; }""",
        global_size=(_N, _N), local_size=(16, 16), buffer_bytes=(_PLANE,) * 2, written=1,
        scalars=(_N, _N),
    ),
    WindowKernel(
        name="transpose_naive",
        source="""kernel void transpose_naive(global const float *a, global float *b,
                                    int w, int h) {
            b[get_global_id(0) * h + get_global_id(1)] =
                a[get_global_id(1) * w + get_global_id(0)]; }""",
        global_size=(_N, _N), local_size=(32, 8), buffer_bytes=(_PLANE,) * 2, written=1,
        scalars=(_N, _N),
    ),
    WindowKernel(
        name="matrix_product",
        source="""kernel void matrix_product(global const float *a, global const float *b,
                                   global float *c, int n) {
            local float s[16][16], t[16][16];
            int x = get_global_id(0), y = get_global_id(1);
            int lx = get_local_id(0), ly = get_local_id(1);
            float sum = 0;
            for (int k = 0; k < n; k += 16) {
                s[ly][lx] = a[y * n + k + lx];
                t[ly][lx] = b[(k + ly) * n + x];
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int i = 0; i < 16; ++i) sum += s[ly][i] * t[i][lx];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            c[y * n + x] = sum; }""",
        global_size=(1024, 1024), local_size=(16, 16), buffer_bytes=(4 * 1024 * 1024,) * 3,
        written=2, scalars=(1024,),
    ),
    WindowKernel(
        name="colour_to_grey",
        source="""kernel void colour_to_grey(global const uchar *rgb, global uchar *grey, int w) {
            int i = get_global_id(1) * w + get_global_id(0);
            grey[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8; }""",
        global_size=(2 * _N, 2 * _N), local_size=(16, 16), buffer_bytes=(3 * _PLANE, _PLANE),
        written=1, scalars=(2 * _N,),
    ),
    WindowKernel(
        name="seven_point_3d",
        source="""kernel void seven_point_3d(global const float *a, global float *b, int n) {
            int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
            if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
            int i = (z * n + y) * n + x;
            b[i] = a[i] * 0.4f + 0.1f * (a[i - 1] + a[i + 1] + a[i - n] + a[i + n]
                                         + a[i - n * n] + a[i + n * n]); }""",
        global_size=(_CUBE,) * 3, local_size=(8, 8, 4), buffer_bytes=(4 * _CUBE**3,) * 2,
        written=1, scalars=(_CUBE,),
    ),
    WindowKernel(
        name="scaled_sum_3d",
        source="""kernel void scaled_sum_3d(global const float *a, global const float *b,
                                  global float *c) {
            size_t i = get_global_linear_id();
            c[i] = a[i] + 0.5f * b[i]; }""".replace(
            "get_global_linear_id()",
            "(get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0)"
            " + get_global_id(0)",
        ),
        global_size=(_CUBE,) * 3, local_size=(8, 8, 4), buffer_bytes=(4 * _CUBE**3,) * 3,
        written=2,
    ),
    WindowKernel(
        name="blur_columns",
        source="""kernel void blur_columns(global const float *a, global float *b, int w, int h) {
            int x = get_global_id(0), y = get_global_id(1);
            float sum = 0;
            for (int j = -6; j <= 6; ++j) sum += a[clamp(y + j, 0, h - 1) * w + x];
            b[y * w + x] = sum / 13; }""",
        global_size=(4 * _N, _N), local_size=(32, 8), buffer_bytes=(4 * _PLANE,) * 2,
        written=1, scalars=(4 * _N, _N),
    ),
    WindowKernel(
        name="row_weighted",
        source="""kernel void row_weighted(global const float *a, global const float *row,
                                 global float *b, int w, int h) {
            int x = get_global_id(0), y = get_global_id(1);
            b[y * w + x] = a[y * w + x] / row[y]; }""",
        global_size=(4 * _N, _N), local_size=(32, 8),
        buffer_bytes=(4 * _PLANE, 4 * _N, 4 * _PLANE), written=2, scalars=(4 * _N, _N),
    ),
)  # fmt: skip
