"""Many hosts: the plan over them, where their results lie, and Ansible, which drives them.

Only ``cpubench.fleet.job`` is used on the hosts themselves.
"""
