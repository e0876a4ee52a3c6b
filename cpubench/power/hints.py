"""What a person can do about each problem: a module, a permission, a kernel, a BIOS setting, a container's flag."""

from __future__ import annotations

from pathlib import Path

from cpubench.host.virtual import read_virtual
from cpubench.power.source import is_amd

IN_GUEST = (
    "a virtual machine: its host has the meters; measure on bare metal, or outside: --meter cmd:.. (a metered outlet), "
    "--meter redfish (the host's BMC)"
)
UDEV = (
    'run as root, or let a group read it: echo \'SUBSYSTEM=="powercap", ACTION=="add", '
    'RUN+="/bin/chgrp power /sys%p/energy_uj", RUN+="/bin/chmod g+r /sys%p/energy_uj"\' | '
    "sudo tee /etc/udev/rules.d/70-powercap.rules (closed since Linux 5.10: CVE-2020-8694)"
)
MASKED = (
    "the container hides it: docker run -v /sys/devices/virtual/powercap:/sys/devices/virtual/powercap:ro .. "
    "(--security-opt systempaths=unconfined), or run on the host"
)
PARANOID = "sudo sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON (docker run --cap-add PERFMON)"
NO_VALUE = "the driver or firmware answers with an error: dmesg | tail may say why; update kernel and BIOS"
HSMP_BIOS = (
    "sudo modprobe hsmp_acpi || sudo modprobe amd_hsmp; where dmesg says that HSMP is disabled: in the BIOS, "
    "AMD CBS > NBIO > SMU > HSMP Support = Enabled (EPYC 7003 and later)"
)
IPMI_TOOL = "apt-get install ipmitool, or dnf install ipmitool"
REDFISH = (
    "set CPUBENCH_REDFISH_URL=https://BMC, CPUBENCH_REDFISH_USER and CPUBENCH_REDFISH_PASSWORD, or give "
    "--meter redfish:https://BMC/redfish/v1/Chassis/ID"
)
ESTIMATED = "a virtual machine: the watts are shares that its host made up by CPU time; not taken for scores"
# By code, for what was found by reading rather than by looking for files.
OF_VALUES = {
    "constant": "its firmware or hypervisor does not feed it: use another meter",
    "zero": "its firmware or hypervisor does not feed it: use another meter",
    "sentinel": "it answers with all ones, which means none: use another meter",
    "implausible_high": "no socket draws that much: use another meter",
    "negative_step": "it was reset, or goes back by itself: use another meter",
    "partial_sockets": "a sum over some sockets is no total: make all of them readable, or use another meter",
    "partial": "a sum without it is no total: read it again, make it readable, or use another meter",
    "mirrored": "where dies show one counter their sum is no total: use another meter",
    "clock_skew": "set both clocks by NTP, print fractions of seconds, and each line at once",
    "asymmetric_domains": "use the scope that every socket has",
    "asymmetric": "sockets that differ threefold are not believed: use the scope package",
    "gap": "it was not read, or did not answer, for too long",
    "garbage": "it printed something else than UNIX_TIME WATTS",
    "time_backwards": "its clock was set back",
}


def no_powercap(root: Path) -> str:
    if read_virtual(root).value:
        return IN_GUEST
    if is_amd(root):
        return "AMD: Linux 5.11 or later, sudo modprobe intel_rapl_msr (it serves AMD too), CONFIG_INTEL_RAPL"
    if (root / "sys/firmware/devicetree").is_dir() or not (root / "proc/cpuinfo").is_file():
        return "this CPU has no RAPL; on Arm see hwmon, or --meter cmd:.. and redfish"
    return "sudo modprobe intel_rapl_msr intel_rapl_tpmi (CONFIG_POWERCAP, CONFIG_INTEL_RAPL)"


def no_perf(root: Path) -> str:
    if read_virtual(root).value:
        return IN_GUEST
    return "sudo modprobe rapl (CONFIG_PERF_EVENTS_INTEL_RAPL); a CPU newer than the kernel has none: use powercap"


def no_hwmon(root: Path) -> str:
    if read_virtual(root).value:
        return IN_GUEST
    if is_amd(root):
        return HSMP_BIOS
    return (
        "sudo modprobe acpi_power_meter (also NVIDIA Grace: CONFIG_SENSORS_ACPI_POWER), smpro-hwmon or xgene-hwmon "
        "(Ampere); CPUs of Arm clouds show nothing"
    )


def no_ipmi(root: Path) -> str:
    if read_virtual(root).value:
        return IN_GUEST
    return "sudo modprobe ipmi_si ipmi_devintf (docker run --device /dev/ipmi0); a machine without a BMC has none"
