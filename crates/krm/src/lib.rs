//! KRM function SDK and the interface, ipam, vlan and nad functions.
