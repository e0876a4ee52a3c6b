/* SPDX-License-Identifier: GPL-2.0 */
/* A made-up machine of two sockets behind real powercap zones: for tests in a virtual machine, and nowhere else. */
#ifndef LAB_H
#define LAB_H

#include <linux/powercap.h>
#include <linux/types.h>

#define LAB_SOCKETS 2
#define LAB_NO_LIMIT U64_MAX

/* Watts as they are limited now, in mW or LAB_NO_LIMIT; zones write it and the model obeys. */
void lab_limit(int socket, u64 mw);

/* What a socket has drawn since the module was loaded, in nJ: all of it, and what its CPUs' work was of that. */
u64 lab_package_nj(int socket);
u64 lab_work_nj(int socket);
u64 lab_uptime_us(void);

enum kind { PSYS, PACKAGE, DRAM };

struct lab_zone {
	struct powercap_zone zone;
	enum kind kind;
	int socket;
	bool there, enabled;
	u64 limit[2]; /* long_term, short_term; in units of 1/8 W */
};

static inline struct lab_zone *lab_of(struct powercap_zone *zone)
{
	return container_of(zone, struct lab_zone, zone);
}

int lab_get_range(struct powercap_zone *zone, u64 *uj);
int lab_get_energy(struct powercap_zone *zone, u64 *uj);

extern const struct powercap_zone_ops lab_zone_ops;
extern const struct powercap_zone_constraint_ops lab_constraint_ops;

/* The limits of a machine that was just switched on. */
void lab_reset(struct lab_zone *one);

int lab_model_start(void);
void lab_model_stop(void);

#endif
