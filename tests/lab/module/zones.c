// SPDX-License-Identifier: GPL-2.0
/* The zones that intel_rapl would register on a server of two sockets: psys, and two packages with their dram. */
#include <linux/err.h>
#include <linux/module.h>
#include "lab.h"

#define MOST_SKIPPED 16

static uint skip;
module_param(skip, uint, 0444);
MODULE_PARM_DESC(skip, "numbers that others have had before: zones come and go with CPUs");

static struct powercap_control_type *control;
static struct lab_zone psys, packages[LAB_SOCKETS], drams[LAB_SOCKETS], others[MOST_SKIPPED];

static int add(struct lab_zone *one, enum kind kind, int socket, const char *name, struct lab_zone *parent)
{
	struct powercap_zone *made;

	one->kind = kind;
	one->socket = socket;
	lab_reset(one);
	made = powercap_register_zone(&one->zone, control, name, parent ? &parent->zone : NULL, &lab_zone_ops,
				      kind == DRAM ? 1 : 2, &lab_constraint_ops);
	one->there = !IS_ERR(made);
	return PTR_ERR_OR_ZERO(made);
}

static void drop(struct lab_zone *one)
{
	if (one->there)
		powercap_unregister_zone(control, &one->zone);
	one->there = false;
}

static int add_all(void)
{
	static const char *const names[LAB_SOCKETS] = { "package-0", "package-1" };
	int socket, error = 0;
	uint number;

	for (number = 0; number < min_t(uint, skip, MOST_SKIPPED); number++)
		error = error ?: add(&others[number], PSYS, 0, "psys", NULL);
	error = error ?: add(&psys, PSYS, 0, "psys", NULL);
	for (socket = 0; socket < LAB_SOCKETS; socket++) {
		error = error ?: add(&packages[socket], PACKAGE, socket, names[socket], NULL);
		error = error ?: add(&drams[socket], DRAM, socket, "dram", &packages[socket]);
	}
	for (number = 0; number < MOST_SKIPPED; number++)
		drop(&others[number]);
	return error;
}

static void remove_all(void)
{
	int socket;

	for (socket = LAB_SOCKETS - 1; socket >= 0; socket--) {
		drop(&drams[socket]);
		drop(&packages[socket]);
	}
	drop(&psys);
	powercap_unregister_control_type(control);
	lab_model_stop();
}

static int __init lab_init(void)
{
	int error;

	control = powercap_register_control_type(NULL, "intel-rapl", NULL);
	if (IS_ERR_OR_NULL(control))
		return -ENODEV;
	error = lab_model_start();
	error = error ?: add_all();
	if (error)
		remove_all();
	return error;
}

static void __exit lab_exit(void)
{
	remove_all();
}

module_init(lab_init);
module_exit(lab_exit);
MODULE_DESCRIPTION("made-up powercap zones for tests in a virtual machine");
MODULE_LICENSE("GPL");
