// A step of Floyd's and Warshall's algorithm: no way is longer than the one by the pivot.
__kernel void shortest_paths(__global float *distances, const int pivot)
{
    const size_t vertices = get_global_size(0);
    const size_t from = get_global_id(1);
    const size_t to = get_global_id(0);
    const float by_pivot = distances[from * vertices + pivot] + distances[pivot * vertices + to];
    if (by_pivot < distances[from * vertices + to]) {
        distances[from * vertices + to] = by_pivot;
    }
}
