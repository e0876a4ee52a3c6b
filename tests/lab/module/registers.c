// SPDX-License-Identifier: GPL-2.0
/*
 * Limits in units of 1/8 W that are masked to 15 bits, as in an MSR, and checked by nobody. Knobs in
 * /sys/module/lab_rapl/parameters make them lock and clamp.
 */
#include <linux/module.h>
#include "lab.h"

#define STEP_UW 125000ULL
#define STEP_MASK 0x7fffULL

static uint long_w = 350, short_w = 420, locked, floor_w;
static bool ignore;
module_param(long_w, uint, 0444);
module_param(short_w, uint, 0444);
module_param(locked, uint, 0644);
MODULE_PARM_DESC(locked, "bits of the sockets whose zones refuse");
module_param(floor_w, uint, 0644);
MODULE_PARM_DESC(floor_w, "lower limits become this");
module_param(ignore, bool, 0644);
MODULE_PARM_DESC(ignore, "writes of limits succeed and do nothing");

static bool is_locked(const struct lab_zone *one)
{
	return one->kind != PSYS && locked & 1U << one->socket;
}

static void in_force(const struct lab_zone *one)
{
	u64 steps = min(one->limit[0], one->limit[1]);

	if (one->kind == PACKAGE)
		lab_limit(one->socket, one->enabled ? steps * (STEP_UW / 1000) : LAB_NO_LIMIT);
}

static int set_enable(struct powercap_zone *zone, bool on)
{
	struct lab_zone *one = lab_of(zone);

	if (is_locked(one))
		return -EACCES;
	one->enabled = on;
	in_force(one);
	return 0;
}

static int get_enable(struct powercap_zone *zone, bool *on)
{
	*on = lab_of(zone)->enabled && !is_locked(lab_of(zone));
	return 0;
}

static int set_limit(struct powercap_zone *zone, int id, u64 uw)
{
	struct lab_zone *one = lab_of(zone);

	if (is_locked(one))
		return -EACCES;
	if (ignore)
		return 0;
	one->limit[id] = max(div64_u64(uw, STEP_UW) & STEP_MASK, div64_u64(floor_w * 1000000ULL, STEP_UW));
	in_force(one);
	return 0;
}

static int get_limit(struct powercap_zone *zone, int id, u64 *uw)
{
	*uw = lab_of(zone)->limit[id] * STEP_UW;
	return 0;
}

static int get_window(struct powercap_zone *zone, int id, u64 *us)
{
	*us = id ? 7808 : 99942;
	return 0;
}

static int set_window(struct powercap_zone *zone, int id, u64 us)
{
	return 0;
}

static int get_max(struct powercap_zone *zone, int id, u64 *uw)
{
	*uw = lab_of(zone)->kind == DRAM ? 0 : long_w * 1000000ULL;
	return 0;
}

static const char *get_name(struct powercap_zone *zone, int id)
{
	return id ? "short_term" : "long_term";
}

static int release(struct powercap_zone *zone)
{
	return 0; /* it is the module's own, and the framework wants to be able to say so */
}

const struct powercap_zone_ops lab_zone_ops = {
	.get_max_energy_range_uj = lab_get_range, .get_energy_uj = lab_get_energy,
	.set_enable = set_enable, .get_enable = get_enable, .release = release,
};

const struct powercap_zone_constraint_ops lab_constraint_ops = {
	.set_power_limit_uw = set_limit, .get_power_limit_uw = get_limit, .set_time_window_us = set_window,
	.get_time_window_us = get_window, .get_max_power_uw = get_max, .get_name = get_name,
};

void lab_reset(struct lab_zone *one)
{
	one->enabled = true;
	one->limit[0] = (one->kind == DRAM ? 40 : long_w) * 1000000ULL / STEP_UW;
	one->limit[1] = short_w * 1000000ULL / STEP_UW;
	in_force(one);
}
