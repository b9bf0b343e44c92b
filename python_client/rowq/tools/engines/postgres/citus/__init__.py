"""rowq on the nodes of a Citus cluster: sql/postgres/citus, installed and looked at everywhere."""
