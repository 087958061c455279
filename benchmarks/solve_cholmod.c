/* CHOLMOD for ctypes, with 64-bit indices (|L| beyond 2³¹ entries). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "cholmod.h"

typedef struct {
    cholmod_common common;
    cholmod_sparse matrix; /* the lower triangle by columns, which is the upper by rows */
    cholmod_factor *factor;
} State;

void *cholmod_new(int64_t n, int64_t *begins, int64_t *rows, double *values, int ordering) {
    State *s = calloc(1, sizeof *s);
    cholmod_l_start(&s->common);
    s->common.print = 0;
    s->common.supernodal = CHOLMOD_SUPERNODAL;
    if (ordering >= 0) { /* else the default: AMD, then METIS where AMD fills much */
        s->common.nmethods = 1;
        s->common.method[0].ordering = ordering;
    }
    cholmod_sparse *a = &s->matrix;
    a->nrow = a->ncol = n;
    a->nzmax = begins[n];
    a->p = begins;
    a->i = rows;
    a->x = values;
    a->stype = -1;
    a->itype = CHOLMOD_LONG;
    a->xtype = CHOLMOD_REAL;
    a->dtype = CHOLMOD_DOUBLE;
    a->sorted = a->packed = 1;
    return s;
}

/* job: 1 analysis, 2 factorization, 3 solution in place. Gives CHOLMOD's status, or 1 where it is not definite. */
int cholmod_run(void *state, int job, double *rhs) {
    State *s = state;
    if (job == 1) {
        s->factor = cholmod_l_analyze(&s->matrix, &s->common);
    } else if (job == 2) {
        cholmod_l_factorize(&s->matrix, s->factor, &s->common);
    } else {
        size_t n = s->matrix.nrow;
        cholmod_dense b = {.nrow = n, .ncol = 1, .nzmax = n, .d = n, .x = rhs, .xtype = CHOLMOD_REAL, .dtype = CHOLMOD_DOUBLE};
        cholmod_dense *x = cholmod_l_solve(CHOLMOD_A, s->factor, &b, &s->common);
        if (x) {
            memcpy(rhs, x->x, n * sizeof(double));
            cholmod_l_free_dense(&x, &s->common);
        }
    }
    return s->common.status;
}

/* |L|, flops, the ordering taken, the most bytes that CHOLMOD had allocated. */
void cholmod_said(void *state, double said[4]) {
    State *s = state;
    said[0] = s->common.lnz;
    said[1] = s->common.fl;
    said[2] = s->common.method[s->common.selected].ordering;
    said[3] = s->common.memory_usage;
}

void cholmod_numbers(int version[3]) {
    version[0] = CHOLMOD_MAIN_VERSION;
    version[1] = CHOLMOD_SUB_VERSION;
    version[2] = CHOLMOD_SUBSUB_VERSION;
}
