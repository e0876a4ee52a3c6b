// SPDX-License-Identifier: GPL-2.0
/*
 * Watts from a simple model. A socket draws idle_mw and shares out work_mw among its CPUs, each by how much of its
 * time it works: is neither idle nor held up. A limit holds CPUs up: on each a real-time thread takes time away, so
 * that whatever runs there is slower. It keeps account: what a CPU worked too much in a moment when the thread came
 * late is taken back afterwards, and what it was held up too long is given back, so that the mean is the limit.
 */
#include <linux/cpu.h>
#include <linux/cpufreq.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/topology.h>
#include "lab.h"

#define PERIOD_US 10000
#define MOST_HELD_US (PERIOD_US * 9 / 10) /* the scheduler lets real-time threads have 95 % */
#define MOST_DUE_US 1000000
#define MOST_CREDIT_US 50000

static uint idle_mw = 90000, work_mw = 240000;
module_param(idle_mw, uint, 0444);
module_param(work_mw, uint, 0444);
static bool obey = true;
module_param(obey, bool, 0644);
MODULE_PARM_DESC(obey, "whether limits do anything");

struct holder {
	struct task_struct *task;
	int cpu, socket;
};

static struct holder holders[NR_CPUS];
static atomic64_t work_nj[LAB_SOCKETS];
static int cpus_of[LAB_SOCKETS];
static u64 limit_mw[LAB_SOCKETS] = { LAB_NO_LIMIT, LAB_NO_LIMIT }, began_us;

void lab_limit(int socket, u64 mw)
{
	WRITE_ONCE(limit_mw[socket], mw);
}

u64 lab_uptime_us(void)
{
	return ktime_to_us(ktime_get()) - began_us;
}

u64 lab_work_nj(int socket)
{
	return atomic64_read(&work_nj[socket]);
}

u64 lab_package_nj(int socket)
{
	return lab_uptime_us() * idle_mw + lab_work_nj(socket);
}

/* The share of its time that a CPU may work, per mille. */
static int allowed(int socket)
{
	u64 limit = READ_ONCE(limit_mw[socket]);

	if (!obey || limit >= idle_mw + work_mw)
		return 1000;
	return limit <= idle_mw ? 0 : (int)((limit - idle_mw) * 1000 / work_mw);
}

static int hold(void *data)
{
	struct holder *me = data;
	u64 before_us, idle_before_us = get_cpu_idle_time(me->cpu, &before_us, 0);
	s64 due_us = 0;

	sched_set_fifo(current);
	while (!kthread_should_stop()) {
		s64 asked_us = clamp_t(s64, due_us, 0, MOST_HELD_US), held_us;
		u64 began_ns = ktime_get_ns(), now_us, idle_us;
		s64 passed, worked, rest_us, least_us;

		while (ktime_get_ns() < began_ns + asked_us * 1000)
			cpu_relax();
		held_us = (ktime_get_ns() - began_ns) / 1000;
		rest_us = max_t(s64, PERIOD_US - held_us, PERIOD_US / 10);
		usleep_range(rest_us, rest_us + 50);
		idle_us = get_cpu_idle_time(me->cpu, &now_us, 0);
		passed = now_us - before_us;
		if (passed <= 0)
			continue;
		worked = clamp_t(s64, passed - (s64)(idle_us - idle_before_us) - held_us, 0, passed);
		atomic64_add(worked * (work_mw / cpus_of[me->socket]), &work_nj[me->socket]);
		/* No credit comes from being idle: it would be a burst above the limit. */
		least_us = max_t(s64, min_t(s64, due_us, 0) - (held_us - asked_us), -MOST_CREDIT_US);
		due_us += worked - passed * allowed(me->socket) / 1000;
		due_us = clamp_t(s64, due_us, least_us, MOST_DUE_US);
		before_us = now_us;
		idle_before_us = idle_us;
	}
	return 0;
}

int lab_model_start(void)
{
	int cpu;

	began_us = ktime_to_us(ktime_get());
	for_each_online_cpu(cpu)
		cpus_of[topology_physical_package_id(cpu) % LAB_SOCKETS]++;
	for_each_online_cpu(cpu) {
		struct holder *me = &holders[cpu];

		me->cpu = cpu;
		me->socket = topology_physical_package_id(cpu) % LAB_SOCKETS;
		me->task = kthread_create_on_cpu(hold, me, cpu, "lab_rapl/%u");
		if (IS_ERR(me->task))
			return PTR_ERR(xchg(&me->task, NULL));
		wake_up_process(me->task);
	}
	return 0;
}

void lab_model_stop(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (holders[cpu].task)
			kthread_stop(holders[cpu].task);
}
