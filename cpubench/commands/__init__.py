"""The commands of the rooms: each module holds one, ``command``; no logic, and light to import."""
