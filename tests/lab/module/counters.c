// SPDX-License-Identifier: GPL-2.0
/* What a zone has drawn, in units of 61 uJ, by a counter that starts again after range_j. */
#include <linux/math64.h>
#include <linux/module.h>
#include "lab.h"

#define UNIT_NJ 61035ULL

static uint range_j = 262143;
module_param(range_j, uint, 0444);
MODULE_PARM_DESC(range_j, "joules after which counters start again");
static bool failing;
module_param(failing, bool, 0644);
MODULE_PARM_DESC(failing, "counters cannot be read");

/* Without a wrap, in uJ, of each package: what a meter should have seen. */
static int get_drawn(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%llu %llu\n", lab_package_nj(0) / 1000, lab_package_nj(1) / 1000);
}

static const struct kernel_param_ops drawn_ops = { .get = get_drawn };
module_param_cb(drawn_uj, &drawn_ops, NULL, 0444);

static u64 drawn_nj(const struct lab_zone *one)
{
	u64 sum = lab_uptime_us() * 30000; /* fans and the like: 30 W */
	int socket;

	if (one->kind == PACKAGE)
		return lab_package_nj(one->socket);
	if (one->kind == DRAM)
		return lab_uptime_us() * 4000 + lab_work_nj(one->socket) / 10;
	for (socket = 0; socket < LAB_SOCKETS; socket++)
		sum += lab_package_nj(socket);
	return sum;
}

static u64 modulus(void)
{
	return div64_u64(range_j * 1000000000ULL, UNIT_NJ);
}

int lab_get_range(struct powercap_zone *zone, u64 *uj)
{
	*uj = (modulus() - 1) * UNIT_NJ / 1000;
	return 0;
}

int lab_get_energy(struct powercap_zone *zone, u64 *uj)
{
	u64 units, left;

	if (failing)
		return -EIO;
	units = div64_u64(drawn_nj(lab_of(zone)), UNIT_NJ);
	div64_u64_rem(units, modulus(), &left);
	*uj = left * UNIT_NJ / 1000;
	return 0;
}
