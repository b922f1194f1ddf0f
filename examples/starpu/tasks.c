/*
 * A StarPU program with three codelets, each with an OpenCL and a CPU implementation.
 *
 *   ./tasks [--tasks N] [--seed N] [--check]   runs N tasks of each codelet and size, prints JSON
 *                                              (predicted_seconds is 0 where nothing is known)
 *   ./tasks --sample                           times stretches of the CPU functions, prints JSON
 *                                              for `kernelcast starpu export --times`
 *
 * Run it in this folder: it reads kernels/. Which scheduler, which workers: STARPU_SCHED,
 * STARPU_NCPU, STARPU_NOPENCL, STARPU_OPENCL_ON_CPUS.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <starpu.h>
#include <starpu_opencl.h>

#include "functions.h"

enum { KINDS = 3, SIZES = 3, MOST_BUFFERS = 3 };

/* What a task needs to know besides its data. */
struct launch {
    int kind;
    int n;
};

static const char *const names[KINDS] = {"horner", "matmul", "stencil"};
static const int sizes[KINDS][SIZES] = {
    {524288, 1048576, 2097152}, {256, 384, 512}, {1024, 1536, 2048}};
static const int inputs[KINDS] = {1, 2, 1};
static struct starpu_opencl_program programs[KINDS];

static long elements_of(int kind, int n) { return kind == 0 ? n : (long)n * n; }

static int units_of(int kind, int n) { (void)kind; return n; }

static double flops_of(int kind, double n)
{
    return kind == 0 ? 2.0 * DEGREE * n : kind == 1 ? 2.0 * n * n * n : 33.0 * n * n;
}

static void run_range(int kind, int n, float **data, int begin, int end)
{
    if (kind == 0)
        horner_range(data[0], data[1], begin, end);
    else if (kind == 1)
        matmul_range(data[0], data[1], data[2], n, begin, end);
    else
        stencil_range(data[0], data[1], n, begin, end);
}

static void launch_kernel(const struct launch *launch, cl_mem *data)
{
    cl_kernel kernel;
    cl_command_queue queue;
    const int device = starpu_worker_get_devid(starpu_worker_get_id());
    cl_int error =
        starpu_opencl_load_kernel(&kernel, &queue, &programs[launch->kind], names[launch->kind], device);
    if (error != CL_SUCCESS)
        STARPU_OPENCL_REPORT_ERROR(error);
    const int buffers = inputs[launch->kind] + 1;
    for (int i = 0; i < buffers; ++i)
        error |= clSetKernelArg(kernel, i, sizeof(cl_mem), &data[i]);
    const int number = launch->kind == 0 ? DEGREE : launch->n;
    error |= clSetKernelArg(kernel, buffers, sizeof(int), &number);
    const size_t n = launch->n;
    const size_t global[2] = {n, n};
    static const size_t local[KINDS][2] = {{64, 1}, {16, 4}, {64, 1}};
    error |= clEnqueueNDRangeKernel(queue, kernel, launch->kind == 0 ? 1 : 2, NULL, global,
                                    local[launch->kind], 0, NULL, NULL);
    if (error != CL_SUCCESS)
        STARPU_OPENCL_REPORT_ERROR(error);
    clFinish(queue);
    starpu_opencl_release_kernel(kernel);
}

static void run_on_opencl(void *buffers[], void *argument)
{
    const struct launch *launch = argument;
    cl_mem data[MOST_BUFFERS];
    for (int i = 0; i <= inputs[launch->kind]; ++i)
        data[i] = (cl_mem)(launch->kind == 0 ? STARPU_VECTOR_GET_DEV_HANDLE(buffers[i])
                                             : STARPU_MATRIX_GET_DEV_HANDLE(buffers[i]));
    launch_kernel(launch, data);
}

static void run_on_cpu(void *buffers[], void *argument)
{
    const struct launch *launch = argument;
    float *data[MOST_BUFFERS];
    for (int i = 0; i <= inputs[launch->kind]; ++i)
        data[i] = (float *)(launch->kind == 0 ? STARPU_VECTOR_GET_PTR(buffers[i])
                                              : STARPU_MATRIX_GET_PTR(buffers[i]));
    run_range(launch->kind, launch->n, data, 0, units_of(launch->kind, launch->n));
}

static struct starpu_perfmodel models[KINDS] = {
    {.type = STARPU_HISTORY_BASED, .symbol = "kc_horner"},
    {.type = STARPU_HISTORY_BASED, .symbol = "kc_matmul"},
    {.type = STARPU_HISTORY_BASED, .symbol = "kc_stencil"},
};

#define CODELET(kind, count, ...)                                                                  \
    {                                                                                              \
        .cpu_funcs = {run_on_cpu}, .opencl_funcs = {run_on_opencl}, .nbuffers = count,             \
        .modes = {__VA_ARGS__}, .model = &models[kind], .name = "kc"                               \
    }
static struct starpu_codelet codelets[KINDS] = {
    CODELET(0, 2, STARPU_R, STARPU_W),
    CODELET(1, 3, STARPU_R, STARPU_R, STARPU_W),
    CODELET(2, 2, STARPU_R, STARPU_W),
};

static float *make_array(long count, unsigned seed)
{
    float *array = NULL;
    if (posix_memalign((void **)&array, 64, count * sizeof(float)))
        exit(1);
    for (long i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        array[i] = (float)(seed >> 8) / (float)(1 << 24);
    }
    return array;
}

static starpu_data_handle_t register_array(int kind, int n, float *array)
{
    starpu_data_handle_t handle;
    if (kind == 0)
        starpu_vector_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)array, n, sizeof(float));
    else
        starpu_matrix_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)array, n, n, n,
                                    sizeof(float));
    return handle;
}

/* Compiles each kernel and launches it once, so that no task pays for it. Measures nothing. */
static void warm_up(void *unused)
{
    (void)unused;
    cl_context context;
    starpu_opencl_get_current_context(&context);
    for (int kind = 0; kind < KINDS; ++kind)
        for (int s = 0; s < SIZES; ++s) {
            const struct launch launch = {kind, sizes[kind][s]};
            cl_mem data[MOST_BUFFERS];
            for (int i = 0; i <= inputs[kind]; ++i)
                data[i] = clCreateBuffer(context, CL_MEM_READ_WRITE,
                                         elements_of(kind, launch.n) * sizeof(float), NULL, NULL);
            launch_kernel(&launch, data);
            for (int i = 0; i <= inputs[kind]; ++i)
                clReleaseMemObject(data[i]);
        }
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static double time_range(int kind, int n, float **data, int begin, int end)
{
    const double begun = now_s();
    run_range(kind, n, data, begin, end);
    return now_s() - begun;
}

/* Times short and long stretches at several places: a twelfth of the loop at most. */
static void sample(void)
{
    enum { PLACES = 8 };
    int is_first = 1;
    printf("[");
    for (int kind = 0; kind < KINDS; ++kind)
        for (int s = 0; s < SIZES; ++s) {
            const int n = sizes[kind][s], units = units_of(kind, n);
            float *data[MOST_BUFFERS];
            for (int i = 0; i <= inputs[kind]; ++i)
                data[i] = make_array(elements_of(kind, n), 1 + i);
            const int most = units / 144 > 0 ? units / 144 : 1;
            int count = most;
            const double pilot = time_range(kind, n, data, units / 2, units / 2 + count) / count;
            if (pilot * count > 5e-4)
                count = (int)(5e-4 / pilot) + 1;
            printf("%s\n {\"codelet\": \"%s\", \"worker\": \"cpu\", \"parameters\": {\"N\": %d}, "
                   "\"units\": %d, \"samples\": [", is_first ? "" : ",", models[kind].symbol, n, units);
            for (int place = 0; place < PLACES; ++place) {
                const int passes = place % 2 ? 2 * count : count;
                const int begin = (int)((place + 0.4) / PLACES * (units - 2 * count));
                const double seconds = time_range(kind, n, data, begin, begin + passes);
                printf("%s{\"first\": %d, \"units\": %d, \"seconds\": %.9f}", place ? ", " : "",
                       begin, passes, seconds);
            }
            printf("]}");
            is_first = 0;
            for (int i = 0; i <= inputs[kind]; ++i)
                free(data[i]);
        }
    printf("\n]\n");
}

struct planned {
    struct launch launch;
    int size;
    float *array;
    starpu_data_handle_t handle;
    struct starpu_task *task;
};

static float *arrays[KINDS][SIZES][MOST_BUFFERS];
static starpu_data_handle_t handles[KINDS][SIZES][MOST_BUFFERS];

static void shuffle(struct planned *tasks, int count, unsigned seed)
{
    for (int i = count - 1; i > 0; --i) {
        seed = seed * 1664525u + 1013904223u;
        const int j = (seed >> 8) % (i + 1);
        const struct planned kept = tasks[i];
        tasks[i] = tasks[j];
        tasks[j] = kept;
    }
}

/* Computes a few rows anew and gives the largest difference. */
static double check(const struct planned *one)
{
    const int kind = one->launch.kind, n = one->launch.n, units = units_of(kind, n);
    const long count = elements_of(kind, n), width = count / units;
    float *expected = make_array(count, 9);
    float *data[MOST_BUFFERS];
    for (int i = 0; i < inputs[kind]; ++i)
        data[i] = arrays[kind][one->size][i];
    data[inputs[kind]] = expected;
    double worst = 0;
    for (int place = 0; place < 5; ++place) {
        const int row = place * (units - 1) / 4;
        run_range(kind, n, data, row, row + 1);
        for (long i = row * width; i < (row + 1) * width; ++i) {
            const double difference = fabs(expected[i] - one->array[i]) / (1 + fabs(expected[i]));
            if (!(difference <= worst))
                worst = difference;
        }
    }
    free(expected);
    return worst;
}

int main(int argc, char **argv)
{
    int per_size = 6, is_checked = 0;
    unsigned seed = 0;
    for (int i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "--sample")) {
            sample();
            return 0;
        } else if (!strcmp(argv[i], "--check")) {
            is_checked = 1;
        } else if (!strcmp(argv[i], "--tasks") && i + 1 < argc) {
            per_size = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
            seed = (unsigned)atoi(argv[++i]);
        } else {
            fprintf(stderr, "usage: %s [--tasks N] [--seed N] [--check] | --sample\n", argv[0]);
            return 2;
        }
    }
    if (starpu_init(NULL))
        return 77;
    for (int kind = 0; kind < KINDS; ++kind) {
        char file[64];
        snprintf(file, sizeof(file), "kernels/%s.cl", names[kind]);
        starpu_opencl_load_opencl_from_file(file, &programs[kind], NULL);
    }
    starpu_execute_on_each_worker(warm_up, NULL, STARPU_OPENCL);

    const int count = KINDS * SIZES * per_size;
    struct planned *tasks = calloc(count, sizeof(*tasks));
    for (int kind = 0; kind < KINDS; ++kind)
        for (int s = 0; s < SIZES; ++s)
            for (int i = 0; i < inputs[kind]; ++i) {
                arrays[kind][s][i] = make_array(elements_of(kind, sizes[kind][s]), 1 + i);
                handles[kind][s][i] = register_array(kind, sizes[kind][s], arrays[kind][s][i]);
            }
    for (int i = 0; i < count; ++i) {
        struct planned *one = &tasks[i];
        one->launch.kind = i % KINDS;
        one->size = i / KINDS % SIZES;
        one->launch.n = sizes[one->launch.kind][one->size];
        one->array = make_array(elements_of(one->launch.kind, one->launch.n), 5);
        one->handle = register_array(one->launch.kind, one->launch.n, one->array);
    }
    shuffle(tasks, count, seed);

    starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
    const double begun = now_s();
    for (int i = 0; i < count; ++i) {
        struct planned *one = &tasks[i];
        const int kind = one->launch.kind;
        struct starpu_task *task = one->task = starpu_task_create();
        task->cl = &codelets[kind];
        for (int b = 0; b < inputs[kind]; ++b)
            task->handles[b] = handles[kind][one->size][b];
        task->handles[inputs[kind]] = one->handle;
        task->cl_arg = &one->launch;
        task->cl_arg_size = sizeof(one->launch);
        task->flops = flops_of(kind, one->launch.n);
        task->destroy = 0;
        if (starpu_task_submit(task))
            return 77;
    }
    starpu_task_wait_for_all();
    const double makespan = now_s() - begun;

    printf("{\"makespan_seconds\": %.6f, \"tasks\": [", makespan);
    for (int i = 0; i < count; ++i) {
        const struct starpu_profiling_task_info *info = tasks[i].task->profiling_info;
        printf("%s\n  {\"codelet\": \"%s\", \"N\": %d, \"footprint\": \"%08x\", \"worker\": \"%s\", "
               "\"seconds\": %.9f, \"predicted_seconds\": %.9f}",
               i ? "," : "", codelets[tasks[i].launch.kind].model->symbol, tasks[i].launch.n,
               starpu_task_data_footprint(tasks[i].task),
               starpu_worker_get_type(info->workerid) == STARPU_CPU_WORKER ? "cpu" : "opencl0",
               1e-6 * starpu_timing_timespec_delay_us((struct timespec *)&info->start_time,
                                                      (struct timespec *)&info->end_time),
               isnan(tasks[i].task->predicted) ? 0.0 : 1e-6 * tasks[i].task->predicted);
    }
    printf("\n]");
    double worst = 0;
    for (int i = 0; i < count; ++i)
        starpu_data_unregister(tasks[i].handle);
    if (is_checked) {
        for (int i = 0; i < count; ++i)
            worst = fmax(worst, check(&tasks[i]));
        printf(", \"largest_difference\": %.3g", worst);
    }
    printf("}\n");
    for (int i = 0; i < count; ++i)
        starpu_task_destroy(tasks[i].task);
    for (int kind = 0; kind < KINDS; ++kind) {
        for (int s = 0; s < SIZES; ++s)
            for (int i = 0; i < inputs[kind]; ++i)
                starpu_data_unregister(handles[kind][s][i]);
        starpu_opencl_unload_opencl(&programs[kind]);
    }
    starpu_shutdown();
    return worst < 1e-4 ? 0 : 1;
}
