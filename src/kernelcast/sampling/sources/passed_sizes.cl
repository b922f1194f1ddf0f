// What a launch of a few work-groups is told of the whole by arguments: see prelude.py. Names begin
// with kc_ or KC_, so that the macros of build options (-Dd=2) leave them alone.
#define KC_PARAMETERS ulong kc_shift_0, ulong kc_shift_1, ulong kc_shift_2, \
    ulong kc_groups_0, ulong kc_groups_1, ulong kc_groups_2, \
    ulong kc_size_0, ulong kc_size_1, ulong kc_size_2, \
    ulong kc_offset_0, ulong kc_offset_1, ulong kc_offset_2
#define KC_ARGUMENTS kc_shift_0, kc_shift_1, kc_shift_2, \
    kc_groups_0, kc_groups_1, kc_groups_2, \
    kc_size_0, kc_size_1, kc_size_2, \
    kc_offset_0, kc_offset_1, kc_offset_2
#define KC_ADDING(name, ask, other) \
    static inline size_t name(uint kc_axis, size_t kc_a, size_t kc_b, size_t kc_c) \
    { \
        return kc_axis == 0 ? ask(0) + kc_a : kc_axis == 1 ? ask(1) + kc_b \
            : kc_axis == 2 ? ask(2) + kc_c : other; \
    }
KC_ADDING(kc_group_id, get_group_id, 0)
KC_ADDING(kc_num_groups, get_num_groups, 1)
KC_ADDING(kc_global_size, get_global_size, 1)
static inline size_t kc_global_offset(uint kc_axis, size_t kc_a, size_t kc_b, size_t kc_c)
{ return kc_axis == 0 ? kc_a : kc_axis == 1 ? kc_b : kc_axis == 2 ? kc_c : 0; }
static inline size_t kc_linear_id(size_t kc_0, size_t kc_1, size_t kc_2, size_t kc_n, size_t kc_m)
{
    return ((get_global_id(2) - kc_2) * kc_m + get_global_id(1) - kc_1) * kc_n
        + get_global_id(0) - kc_0;
}
#define KC_WITH(function, axis, name) function(axis, name##_0, name##_1, name##_2)
#define get_group_id(axis) KC_WITH(kc_group_id, axis, kc_shift)
#define get_num_groups(axis) KC_WITH(kc_num_groups, axis, kc_groups)
#define get_global_size(axis) KC_WITH(kc_global_size, axis, kc_size)
#define get_global_offset(axis) KC_WITH(kc_global_offset, axis, kc_offset)
#define get_global_linear_id() kc_linear_id(kc_offset_0, kc_offset_1, kc_offset_2, \
    get_global_size(0), get_global_size(1))
