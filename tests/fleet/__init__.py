"""Found before the folder of the playbook, which is called fleet too, where the checkout is on the path."""
