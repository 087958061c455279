/* MUMPS for ctypes: the struct stays on this side, so that its layout is the installed header's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "dmumps_c.h"

static void run(DMUMPS_STRUC_C *s, int job) {
    s->job = job;
    dmumps_c(s);
}

/* symmetric: 0 no, 1 positive definite, 2 yes. Row and column numbers begin with 1 and are the caller's to keep. */
void *mumps_new(int symmetric, int n, int64_t entries, int *rows, int *columns, double *values, const char *folder) {
    DMUMPS_STRUC_C *s = calloc(1, sizeof *s);
    s->sym = symmetric;
    s->par = 1;
    s->comm_fortran = -987654; /* USE_COMM_WORLD */
    run(s, -1);
    s->n = n;
    s->nnz = entries;
    s->irn = rows;
    s->jcn = columns;
    s->a = values;
    s->icntl[0] = s->icntl[1] = s->icntl[2] = -1; /* no messages */
    s->icntl[3] = 0;
    strncpy(s->ooc_tmpdir, folder, sizeof s->ooc_tmpdir - 1);
    return s;
}

void mumps_order(void *state, int *places) { ((DMUMPS_STRUC_C *)state)->perm_in = places; }

/* job: 1 analysis, 2 factorization, 3 solution in place, -2 the end, which removes the files. */
void mumps_run(void *state, int job, double *rhs) {
    DMUMPS_STRUC_C *s = state;
    s->rhs = rhs;
    run(s, job);
}

int *mumps_icntl(void *state) { return ((DMUMPS_STRUC_C *)state)->icntl; }
int *mumps_infog(void *state) { return ((DMUMPS_STRUC_C *)state)->infog; }
double *mumps_rinfog(void *state) { return ((DMUMPS_STRUC_C *)state)->rinfog; }
const char *mumps_version(void) { return MUMPS_VERSION; }
