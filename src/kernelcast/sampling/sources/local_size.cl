kernel void kc_local_size(global uint *chosen)
{
    if (get_global_id(0) == get_global_offset(0) && get_global_id(1) == get_global_offset(1)
        && get_global_id(2) == get_global_offset(2))
        for (uint axis = 0; axis < 3; ++axis)
            chosen[axis] = get_local_size(axis);
}
