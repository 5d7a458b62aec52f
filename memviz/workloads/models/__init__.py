"""The models of the workloads; importing one loads torch."""
