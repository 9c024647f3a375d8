/* front/api.h: what the parts of /api/sandbox share (front/api.c, front/api_devices.c) */
#ifndef CLOCHE_FRONT_API_H
#define CLOCHE_FRONT_API_H

#include "front/front.h"

extern const struct route api_device_routes[];
extern const size_t api_device_n_routes;

void api_refuse(struct request *r, unsigned status, const char *what);

#endif
