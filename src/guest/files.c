/* guest/files.c: file requests (see guest.h) */
#include "guest/guest.h"
int files_on_request(struct guest *g, const struct frame *f) { (void)g; (void)f; return -1; }
int files_on_chunk(struct guest *g, const struct frame *f) { (void)g; (void)f; return -1; }
int files_on_end(struct guest *g, const struct frame *f) { (void)g; (void)f; return -1; }
int files_on_cancel(struct guest *g, const struct frame *f) { (void)g; (void)f; return -1; }
bool files_busy(const struct guest *g) { (void)g; return false; }
int files_step(struct guest *g) { (void)g; return -1; }
