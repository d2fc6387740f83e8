"""The cluster door: one small Protocol, its errors, and the adapter that speaks to a real API server.

Nothing outside this room knows HTTP, kubeconfig or the `kubernetes` package. This room knows no phase.
"""
