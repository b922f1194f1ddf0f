// The same built in, for one index space.
#define KC_PICK(a, b, c, other) \
    (kc_axis == 0 ? (a) : kc_axis == 1 ? (b) : kc_axis == 2 ? (c) : (size_t)(other))
#define KC_NUM_GROUPS(axis) (KC_GROUPS_##axis + KC_ZERO)
#define KC_GLOBAL_SIZE(axis) (KC_SIZE_##axis + KC_ZERO)
#define KC_GLOBAL_OFFSET(axis) (KC_OFFSET_##axis + KC_ZERO)
static inline size_t kc_group_id(uint kc_axis)
{ return KC_PICK(KC_GROUP_0, KC_GROUP_1, KC_GROUP_2, 0); }
static inline size_t kc_num_groups(uint kc_axis)
{ return KC_PICK(KC_NUM_GROUPS(0), KC_NUM_GROUPS(1), KC_NUM_GROUPS(2), 1); }
static inline size_t kc_global_size(uint kc_axis)
{ return KC_PICK(KC_GLOBAL_SIZE(0), KC_GLOBAL_SIZE(1), KC_GLOBAL_SIZE(2), 1); }
static inline size_t kc_global_offset(uint kc_axis)
{ return KC_PICK(KC_GLOBAL_OFFSET(0), KC_GLOBAL_OFFSET(1), KC_GLOBAL_OFFSET(2), 0); }
static inline size_t kc_global_linear_id(void)
{
    return ((get_global_id(2) - KC_GLOBAL_OFFSET(2)) * KC_GLOBAL_SIZE(1)
            + get_global_id(1) - KC_GLOBAL_OFFSET(1)) * KC_GLOBAL_SIZE(0)
        + get_global_id(0) - KC_GLOBAL_OFFSET(0);
}
#define get_group_id kc_group_id
#define get_num_groups kc_num_groups
#define get_global_size kc_global_size
#define get_global_offset kc_global_offset
#define get_global_linear_id kc_global_linear_id
