"""The embedded cluster: an API server in process that `tests/conformance` holds to what a real one answers.

Start at `cluster.EmbeddedCluster`; `client.EmbeddedClient` answers to `reconcile.cluster.protocol.Cluster`. Rooms, from
the leaves up: field sets, shapes and walks (server-side apply); kinds and their natures (decoding, defaults,
validation); store, writes, deletion, collector; access, faults, requests; client. Nothing here knows HTTP, a phase, or
the `kubernetes` package, and nothing sleeps.

What is not in it: warnings; admission webhooks and policies; what controllers do beside collection (actors play them);
priority classes, quotas and service account tokens; more than one version of a kind at a time.
"""
