# The control plane that tests run on (kube-apiserver, kube-controller-manager, etcd, kubectl, helm).
# The first build takes about 8 minutes on two cores; it says so, shows progress, and is kept in
# $UPGRADEPLAN_CACHE or ~/.cache/upgradeplan. Afterwards these targets do nothing.
CONTROLPLANE_PYTHON ?= $(or $(wildcard .venv/bin/python),python3)

.PHONY: controlplane controlplane-clients
controlplane: ## build the real control plane for tests, once
	@PYTHONPATH=tests $(CONTROLPLANE_PYTHON) -m controlplane.build

controlplane-clients: ## fetch kubectl and helm only (make bench needs helm)
	@PYTHONPATH=tests $(CONTROLPLANE_PYTHON) -m controlplane.build clients
