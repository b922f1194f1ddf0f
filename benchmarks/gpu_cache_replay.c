/* Replays the loads and stores of a launch through L1 caches, one L2 cache and DRAM, with time.

   Work-groups start in order as places become free; a unit issues an instruction of one warp after
   the other, a warp waits for its oldest load where registers hold no more, and for all of them
   before it stores. found: bytes from L2, bytes from DRAM, bytes written back while it runs,
   bytes stored to L2, cycles, bytes that L2 still has to write. Called by gpu_cache_replay.py. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int64_t tag; uint32_t valid, dirty; int64_t used; int64_t ready; } Line;
typedef struct { Line *lines; int sets, ways, line, sector; } Cache;

static void open_cache(Cache *c, int64_t bytes, int ways, int line, int sector) {
  c->ways = ways; c->line = line; c->sector = sector;
  c->sets = (int)(bytes / line / ways);
  c->lines = calloc((size_t)c->sets * ways, sizeof(Line));
  for (int64_t i = 0; i < (int64_t)c->sets * ways; i++) c->lines[i].tag = -1;
}
/* Give a line of a cache, or the one that makes room for it: least recently used. */
static Line *look(Cache *c, int64_t number, int *found, int64_t clock) {
  uint64_t h = (uint64_t)number * 0x9E3779B97F4A7C15ull;
  Line *set = c->lines + (size_t)((h >> 24) % (uint64_t)c->sets) * c->ways, *oldest = set;
  for (int w = 0; w < c->ways; w++) {
    if (set[w].tag == number) { *found = 1; set[w].used = clock; return set + w; }
    if (set[w].used < oldest->used || set[w].tag < 0) { if (oldest->tag >= 0) oldest = set + w; }
  }
  *found = 0;
  return oldest;
}
typedef struct { int group, warp, pc, trip; int64_t ready; int64_t *done; int issued; int64_t last; } Warp;
typedef struct { Cache l1; int64_t lsu_free; Warp *warps; int next; } Unit;

/* The warp of a unit whose next instruction issues first, in turn. */
static void choose(Unit *own, int slots, int64_t *at, int *which) {
  *at = INT64_MAX; *which = -1;
  for (int k = 0; k < slots; k++) {
    int w = own->next + k; if (w >= slots) w -= slots;
    Warp *one = own->warps + w;
    if (one->group < 0) continue;
    int64_t t = one->ready > own->lsu_free ? one->ready : own->lsu_free;
    if (t < *at) { *at = t; *which = w; if (t == own->lsu_free) break; }
  }
}
/* machine: units, resident, warp, l1_bytes, l1_line, l1_sector, l2_bytes, fetch, l1_lat, l2_lat,
   dram_lat, dram_bytes_per_1000_cycles, l2_bytes_per_1000_cycles, l1_bytes_per_cycle, outstanding, jitter
   program: n rows of kind(0 load,1 store), size, base, sx, sy, sz, loop stride, in loop, wait
   launch: counts x y z, local x y z, lo x y z, hi x y z (of global ids), trips */
int simulate(const int64_t *m, int n, const int64_t *program, const int64_t *launch, int64_t *out) {
  int units = m[0], resident = m[1], width = m[2];
  const int64_t *count = launch, *local = launch + 3, *lo = launch + 6, *hi = launch + 9;
  int64_t trips = launch[12];
  int items = local[0] * local[1] * local[2], warps = (items + width - 1) / width;
  int64_t groups = count[0] * count[1] * count[2], next_group = 0, clock = 0;
  Cache l2; open_cache(&l2, m[6], 16, 128, 32);
  int64_t dram_free = 0, l2_free = 0; /* in 1/1000 cycle */
  int limit = m[14], slots = resident * warps;
  Unit *unit = calloc(units, sizeof(Unit));
  uint64_t rng = 88172645463325252ull;
  memset(out, 0, 8 * sizeof(int64_t));
  for (int u = 0; u < units; u++) {
    open_cache(&unit[u].l1, m[3], m[3] / m[4] >= 512 ? 16 : 8, m[4], m[5]);
    unit[u].warps = calloc(slots, sizeof(Warp));
    for (int w = 0; w < slots; w++) { unit[u].warps[w].group = -1; unit[u].warps[w].done = calloc(limit, 8); }
  }
  int *left = calloc((size_t)groups, sizeof(int));
  /* First wave: round robin over the units. */
  for (int r = 0; r < resident; r++)
    for (int u = 0; u < units; u++)
      if (next_group < groups) {
        for (int w = 0; w < warps; w++) {
          Warp *one = &unit[u].warps[r * warps + w];
          one->group = (int)next_group; one->warp = w; one->pc = 0; one->trip = 0; one->issued = 0; one->last = 0;
          rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17; one->ready = rng % 64;
        }
        left[next_group++] = warps;
      }
  int64_t finished = 0;
  int64_t *at_of = calloc(units, 8); int *which_of = calloc(units, sizeof(int)), last_u = -1;
  for (int u = 0; u < units; u++) choose(unit + u, slots, &at_of[u], &which_of[u]);
  while (finished < groups) {
    /* The unit whose next instruction issues first; only the last one's has changed. */
    if (last_u >= 0) choose(unit + last_u, slots, &at_of[last_u], &which_of[last_u]);
    int best_u = 0; for (int u = 1; u < units; u++) if (at_of[u] < at_of[best_u]) best_u = u;
    int best_w = which_of[best_u]; int64_t best = at_of[best_u]; last_u = best_u;
    Unit *own = unit + best_u; Warp *one = own->warps + best_w;
    own->next = (best_w + 1) % slots; clock++;
    int64_t now = best; const int64_t *ins = program + 9 * one->pc;
    int64_t g = one->group, gid[3] = {g % count[0], g / count[0] % count[1], g / count[0] / count[1]};
    int64_t done = now + m[8]; int64_t numbers[128]; uint32_t masks[128]; int lines = 0;
    int line = ins[0] ? 128 : own->l1.line, sector = ins[0] ? 32 : own->l1.sector;
    for (int lane = 0; lane < width; lane++) {
      int item = one->warp * width + lane; if (item >= items) break;
      int64_t id[3] = {gid[0] * local[0] + item % local[0], gid[1] * local[1] + item / local[0] % local[1],
                       gid[2] * local[2] + item / local[0] / local[1]};
      int in = 1; for (int d = 0; d < 3; d++) in &= id[d] >= lo[d] && id[d] < hi[d];
      if (!in) continue;
      int64_t a = ins[2] + id[0] * ins[3] + id[1] * ins[4] + id[2] * ins[5] + one->trip * ins[6];
      for (int64_t b = a; b < a + ins[1]; b += ins[1] > 4 ? ins[1] - 1 : 4) {
        int64_t number = b / line; uint32_t bit = 1u << (b % line / sector); int k = lines - 1;
        while (k >= 0 && numbers[k] != number) k--;
        if (k < 0) { k = lines++; numbers[k] = number; masks[k] = 0; }
        masks[k] |= bit;
      }
    }
    int64_t busy = (int64_t)width * ins[1] / m[13]; if (busy < 1) busy = 1; if (busy < lines / 4) busy = lines / 4;
    own->lsu_free = now + busy;
    for (int k = 0; k < lines; k++) {
      uint32_t need = masks[k];
      if (!ins[0]) {
        int found; Line *l = look(&own->l1, numbers[k], &found, clock);
        if (!found) { l->tag = numbers[k]; l->valid = 0; l->used = clock; l->ready = 0; }
        if (need & l->valid) { if (l->ready > done) done = l->ready; }
        need &= ~l->valid; l->valid |= masks[k];
        if (!need) continue;
        out[0] += __builtin_popcount(need) * sector;
        int64_t ready = now + m[9];
        for (int s = 0; s < line / sector; s++) if (need >> s & 1)
          for (int p = 0; p < sector; p += 32) {
            int64_t byte = numbers[k] * line + s * sector + p;
            l2_free = (l2_free > now * 1000 ? l2_free : now * 1000) + 32 * 1000000 / m[12];
            int hit; Line *t = look(&l2, byte / 128, &hit, clock);
            if (!hit) { out[2] += 32 * __builtin_popcount(t->tag >= 0 ? t->dirty : 0); t->tag = byte / 128; t->valid = t->dirty = 0; t->used = clock; t->ready = 0; }
            uint32_t bit = 1u << (byte % 128 / 32);
            if (!(t->valid & bit)) {
              uint32_t part = m[7] == 64 ? 3u << (byte % 128 / 64 * 2) : m[7] == 128 ? 15u : bit;
              part &= ~t->valid; out[1] += 32 * __builtin_popcount(part); t->valid |= part;
              dram_free = (dram_free > now * 1000 ? dram_free : now * 1000) + 32 * __builtin_popcount(part) * 1000000 / m[11];
              t->ready = dram_free / 1000 + m[10];
            }
            int64_t r = t->ready > now + m[9] ? t->ready : now + m[9];
            if (l2_free / 1000 + m[9] > r) r = l2_free / 1000 + m[9];
            if (r > ready) ready = r;
          }
        l->ready = ready; if (ready > done) done = ready;
      } else {
        out[3] += 32 * __builtin_popcount(need);
        int hit; Line *t = look(&l2, numbers[k], &hit, clock);
        if (!hit) { out[2] += 32 * __builtin_popcount(t->tag >= 0 ? t->dirty : 0); t->tag = numbers[k]; t->valid = t->dirty = 0; t->used = clock; t->ready = 0; }
        uint32_t fresh = need & ~t->dirty;
        dram_free = (dram_free > now * 1000 ? dram_free : now * 1000) + 32 * __builtin_popcount(fresh) * 1000000 / m[11];
        t->dirty |= need; t->valid |= need;
      }
    }
    /* What the warp does next. */
    if (!ins[0]) { one->done[one->issued % limit] = done; one->issued++; if (done > one->last) one->last = done; }
    int in_loop = ins[7]; one->pc++;
    if (in_loop && (one->pc == n || !program[9 * one->pc + 7]) && one->trip + 1 < trips) {
      one->trip++; int k = one->pc - 1; while (k > 0 && program[9 * (k - 1) + 7]) k--; one->pc = k;
    }
    if (one->pc == n) {
      one->group = -1;
      if (--left[g] == 0) {
        finished++;
        int slot = best_w / warps * warps; int64_t end = one->last > now ? one->last : now;
        for (int w = 0; w < warps; w++) if (own->warps[slot + w].last > end) end = own->warps[slot + w].last;
        if (next_group < groups) {
          for (int w = 0; w < warps; w++) {
            Warp *new = own->warps + slot + w; new->group = (int)next_group; new->warp = w; new->pc = 0; new->trip = 0; new->issued = 0; new->last = 0;
            rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17;
            new->ready = end + 20 + (m[15] ? rng % m[15] : 0);
          }
          left[next_group++] = warps;
        }
        if (end > out[4]) out[4] = end;
      }
      continue;
    }
    const int64_t *next = program + 9 * one->pc; int64_t ready = now + busy + 4;
    if (next[0] || next[8]) { if (one->last > ready) ready = one->last; }
    else if (one->issued >= limit) { int64_t t = one->done[one->issued % limit]; if (t > ready) ready = t; }
    if (m[15]) { rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17; ready += rng % (m[15] / 8 + 1); }
    one->ready = ready;
  }
  for (int64_t i = 0; i < (int64_t)l2.sets * l2.ways; i++) if (l2.lines[i].tag >= 0) out[5] += 32 * __builtin_popcount(l2.lines[i].dirty);
  for (int u = 0; u < units; u++) { free(unit[u].l1.lines); for (int w = 0; w < slots; w++) free(unit[u].warps[w].done); free(unit[u].warps); }
  free(unit); free(l2.lines); free(left);
  return 0;
}
