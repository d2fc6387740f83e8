"""Admission: the validating webhook that judges an UpgradePlan before the API server stores it.

`judging` asks the pre-flight checks, `answer` words what they found as Kubernetes' own validation does; both are pure
except for what they read through an `observe` source. `webhook_server` alone speaks HTTP, `certificates` alone makes
keys. Nothing here changes a plan, and no upgrade waits for it.
"""
