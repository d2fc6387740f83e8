"""How the three servers are called and what files they need; starts nothing."""

from __future__ import annotations

import base64
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from controlplane import audit
from controlplane.binaries import Binaries

CONTROLLERS = (
    "job-controller",
    "deployment-controller",
    "disruption-controller",
    "replicaset-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
)

# SEC1 framing of a P-256 private key; the public half may be left out, readers work it out.
_EC_HEAD, _EC_CURVE = bytes.fromhex("303102010104 20"), bytes.fromhex("a00a06082a8648ce3d030107")


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """One control plane's folder, ports and secrets."""

    binaries: Binaries
    workdir: Path
    api_port: int
    etcd_port: int
    peer_port: int
    admin_token: str = field(default_factory=lambda: secrets.token_hex(16))
    controllers_token: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.etcd_port}"

    @property
    def ca_file(self) -> Path:
        """Written by the API server itself, which signs its own certificate."""
        return self.workdir / "certs" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        return self.workdir / "audit.log"

    @property
    def _token_file(self) -> Path:
        return self.workdir / "tokens.csv"

    @property
    def _policy_file(self) -> Path:
        return self.workdir / "audit-policy.json"

    @property
    def _signing_key(self) -> Path:
        return self.workdir / "service-accounts.key"

    def write_inputs(self) -> None:
        controllers = "system:kube-controller-manager"
        self._token_file.write_text(
            f"{self.admin_token},admin,admin,system:masters\n{self.controllers_token},{controllers},{controllers}\n",
            encoding="ascii",
        )
        self._policy_file.write_text(json.dumps(audit.POLICY), encoding="ascii")
        self._signing_key.write_text(ec_private_key(), encoding="ascii")
        self.audit_log.touch()

    def write_kubeconfig(self, name: str, token: str) -> Path:
        """A complete kubeconfig with one context, `test`; in JSON, which is YAML."""
        cluster = {
            "server": self.url,
            "certificate-authority-data": base64.b64encode(self.ca_file.read_bytes()).decode("ascii"),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name, "namespace": "default"}}],
            "current-context": "test",
        }
        path = self.workdir / f"{name}.kubeconfig"
        path.write_text(json.dumps(content, indent=2), encoding="ascii")
        path.chmod(0o600)
        return path

    def etcd(self) -> list[str]:
        client, peer = self.etcd_url, f"http://127.0.0.1:{self.peer_port}"
        return [
            os.fspath(self.binaries.etcd),
            f"--data-dir={self.workdir / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--socket-reuse-port",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def api_server(self) -> list[str]:
        return [
            os.fspath(self.binaries.kube_apiserver),
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.api_port}",
            "--permit-port-sharing",
            "--endpoint-reconciler-type=none",  # a loopback address is not a valid endpoint
            f"--cert-dir={self.ca_file.parent}",
            f"--token-auth-file={self._token_file}",
            "--authorization-mode=RBAC",
            "--allow-privileged",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={self._signing_key}",
            f"--service-account-key-file={self._signing_key}",
            "--service-cluster-ip-range=10.53.0.0/16",
            f"--audit-policy-file={self._policy_file}",
            f"--audit-log-path={self.audit_log}",
            "--profiling=false",
        ]

    def controller_manager(self) -> list[str]:
        kubeconfig = self.write_kubeconfig("controllers", self.controllers_token)
        return [
            os.fspath(self.binaries.kube_controller_manager),
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._signing_key}",
            f"--root-ca-file={self.ca_file}",
            "--leader-elect=false",
            "--secure-port=0",
            "--profiling=false",
        ]


def ec_private_key() -> str:
    """A fresh key for signing service-account tokens, without a cryptography library."""
    number = 1 + secrets.randbelow(2**255)  # below the order of the group
    der = _EC_HEAD + number.to_bytes(32, "big") + _EC_CURVE
    return f"-----BEGIN EC PRIVATE KEY-----\n{base64.encodebytes(der).decode('ascii')}-----END EC PRIVATE KEY-----\n"
