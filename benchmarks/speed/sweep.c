/* A sweep of collapsed Gibbs over categorical columns, written by hand: what partita's sweep is measured against.

   The layout is partita's. Statistics S (double) and cache C (float) are [column][1 + level][cluster], row 0 of a column
   holding the total; capacity is the length of the cluster axis. The work is the same too: every object is scored in
   all clusters from the cache and in its own, itself taken out, from the counts; only one that moves is removed and
   added. Returns how many objects moved, or -1 if it ran out of clusters (the caller allows plenty). */

#include <math.h>
#include <stdint.h>

typedef struct {
    int64_t n_columns, n_levels, capacity, K;
    double alpha, concentration;
    const int8_t *X;
    double *S;
    float *C;
    int64_t *z, *slot_of, *name_of;
    double *n, *mass;
} table;

static void put(table *t, int64_t i, int64_t k, double w) {
    int64_t rows = t->n_levels + 1;
    for (int64_t d = 0; d < t->n_columns; d++) {
        int64_t x = t->X[i * t->n_columns + d];
        if (x < 0) continue;
        int64_t total = d * rows * t->capacity + k, level = total + (1 + x) * t->capacity;
        t->S[total] += w;
        t->S[level] += w;
        t->C[total] = (float)log(t->alpha * t->n_levels + t->S[total]);
        t->C[level] = (float)log(t->alpha + t->S[level]);
    }
}

static void empty(table *t, int64_t k) {
    int64_t rows = t->n_levels + 1;
    for (int64_t e = 0; e < t->n_columns * rows; e++) {
        t->S[e * t->capacity + k] = 0.0;
        t->C[e * t->capacity + k] = (float)log(e % rows ? t->alpha : t->alpha * t->n_levels);
    }
    t->n[k] = 0.0;
}

static void drop(table *t, int64_t k) {
    int64_t last = --t->K, rows = t->n_columns * (t->n_levels + 1);
    t->slot_of[t->name_of[k]] = -1;
    if (k != last) {
        for (int64_t e = 0; e < rows; e++) {
            t->S[e * t->capacity + k] = t->S[e * t->capacity + last];
            t->C[e * t->capacity + k] = t->C[e * t->capacity + last];
        }
        t->n[k] = t->n[last];
        t->mass[k] = t->mass[last];
        t->name_of[k] = t->name_of[last];
        t->slot_of[t->name_of[k]] = k;
    }
    empty(t, last);
    t->mass[last] = log(t->concentration);
}

static void open_next(table *t) {
    int64_t name = 0;
    while (t->slot_of[name] >= 0) name++;
    t->slot_of[name] = t->K;
    t->name_of[t->K++] = name;
    empty(t, t->K);
    t->mass[t->K] = log(t->concentration);
}

static void score(const table *t, int64_t i, int64_t K, float *restrict lp) {
    int64_t rows = t->n_levels + 1, stop = (K + 7) / 8 * 8;
    if (stop > t->capacity) stop = t->capacity;
    for (int64_t k = 0; k < stop; k++) lp[k] = (float)t->mass[k];
    for (int64_t d = 0; d < t->n_columns; d++) {
        int64_t x = t->X[i * t->n_columns + d];
        if (x < 0) continue;
        const float *restrict total = t->C + d * rows * t->capacity;
        const float *restrict level = total + (1 + x) * t->capacity;
        for (int64_t k = 0; k < stop; k++) lp[k] += level[k] - total[k];
    }
}

static float own(const table *t, int64_t i, int64_t k) {
    int64_t rows = t->n_levels + 1;
    double up = 1.0, down = 1.0, out = log(t->n[k] - 1.0);
    for (int64_t d = 0; d < t->n_columns; d++) {
        int64_t x = t->X[i * t->n_columns + d];
        if (x < 0) continue;
        int64_t total = d * rows * t->capacity + k, level = total + (1 + x) * t->capacity;
        up *= t->alpha + t->S[level] - 1.0;
        down *= t->alpha * t->n_levels + t->S[total] - 1.0;
        if (up < 1e-200 || down > 1e200) {
            out += log(up) - log(down);
            up = down = 1.0;
        }
    }
    return (float)(out + log(up / down));
}

static int64_t pick(float *restrict lp, int64_t K, double u, int64_t likely) {
    float top = lp[0];
    for (int64_t k = 1; k < K; k++) top = lp[k] > top ? lp[k] : top;
    double total = 0.0;
    for (int64_t k = 0; k < K; k++) {
        float gap = lp[k] - top;
        lp[k] = gap > -40.0f ? expf(gap) : 0.0f;
        total += lp[k];
    }
    double left = u * total;
    if (likely >= 0) {
        left -= lp[likely];
        if (left < 0.0) return likely;
        lp[likely] = 0.0f;
    }
    int64_t last = likely;
    for (int64_t k = 0; k < K; k++) {
        if (lp[k] == 0.0f) continue;
        left -= lp[k];
        last = k;
        if (left < 0.0) break;
    }
    return last;
}

int64_t sweep(table *t, int64_t N, const double *u, float *lp) {
    int64_t moved = 0;
    for (int64_t k = 0; k < t->K; k++) t->mass[k] = log(t->n[k]);
    t->mass[t->K] = log(t->concentration);
    for (int64_t i = 0; i < N; i++) {
        if (t->K + 1 >= t->capacity) return -1;
        int64_t old = t->slot_of[t->z[i]];
        int alone = t->n[old] == 1.0;
        if (alone) {
            put(t, i, old, -1.0);
            drop(t, old);
            old = -1;
        }
        score(t, i, t->K + 1, lp);
        if (!alone) lp[old] = own(t, i, old);
        int64_t new = pick(lp, t->K + 1, u[i], old);
        if (new == old) continue;
        moved++;
        if (!alone) {
            put(t, i, old, -1.0);
            t->n[old] -= 1.0;
            t->mass[old] = log(t->n[old]);
        }
        if (new == t->K) open_next(t);
        put(t, i, new, 1.0);
        t->n[new] += 1.0;
        t->mass[new] = log(t->n[new]);
        t->z[i] = t->name_of[new];
    }
    return moved;
}
