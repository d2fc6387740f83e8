"""A cluster that is not there: its server is an address of this machine at which nobody answers."""

from __future__ import annotations

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: dead
contexts: [{name: dead, context: {cluster: dead, user: nobody}}]
clusters: [{name: dead, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: nobody, user: {token: none}}]
"""
