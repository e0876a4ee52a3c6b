"""What ``cpubench fleet init`` copies: an inventory to edit, and the playbook that Ansible runs."""
