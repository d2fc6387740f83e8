"""The redactor: what it takes for secret, by name and by form, and what it leaves."""

from __future__ import annotations

import base64
import gzip
import time
from typing import Any

import pytest

from renderer.redaction import (
    REDACTED,
    Redactor,
    bare_address,
    numbered,
    packaged_redactor,
    packaged_rules,
    without_numbers,
)


def hidden(value: Any) -> Any:
    return packaged_redactor().value(value)


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n"
NAMED = [
    *("password", "adminPassword", "ADMIN_PASSWORD", "adminpassword", "passwd", "passPhrase", "pass", "dbPass", "pwd"),
    *("token", "tokens", "secret", "clientSecret", "credentials", "creds", "auth", "basicAuth", "auths", "psk", "jwt"),
    *(
        "sshKey",
        "ssh_key",
        "SSHKey",
        "sshKeys",
        "privateKey",
        "apiKey",
        "apikey",
        "accessKey",
        "tls.key",
        "encryption-key",
    ),
    *("client-key-data", "kubeconfig", ".dockerconfigjson", "cookie", "authorization", "X-Amz-Signature"),
    *("alpha.example.com/password", "password.example.com/alpha", "userData", "valuesContent", "patch"),
]
HARMLESS = [
    *("secretName", "passwordRef", "tokenNamespace", "imagePullSecretName", "key", "keys", "author", "authenticated"),
    *("compass", "monkey", "machine", "rke.cattle.io/machine-name", "management.harvesterhci.io/pre-hook", "bypassed"),
    *(
        "rke.cattle.io/pre-drain",
        "kubernetes.io/hostname",
        "authz.management.cattle.io/creator",
        "localClusterAuthEndpoint",
    ),
]


@pytest.mark.parametrize("name", NAMED)
def test_a_value_is_marked_by_the_name_of_its_field(name: str) -> None:
    assert hidden({name: "word", "other": "word"}) == {name: REDACTED, "other": "word"}
    assert hidden({name: {"a": ["word", None, True]}}) == {name: {"a": [REDACTED, None, True]}}


@pytest.mark.parametrize("field", ["name", "key"])
def test_a_value_is_marked_by_the_name_beside_it(field: str) -> None:
    entries = [{field: "DB_PASSWORD", "value": "word"}, {field: "DB_HOST", "value": "word"}, {field: "token"}]
    assert hidden(entries) == [{**entries[0], "value": REDACTED}, *entries[1:]]


def test_a_number_may_be_a_password() -> None:
    assert hidden({"password": 12345678, "automountToken": True, "replicas": 3}) == {
        "password": REDACTED,
        "automountToken": True,
        "replicas": 3,
    }


@pytest.mark.parametrize("name", HARMLESS)
def test_what_has_another_name_stays(name: str) -> None:
    assert hidden({name: "word"}) == {name: "word"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (PEM, f"{REDACTED}\n"),
        (f"key: |\n  {PEM}", f"key: |\n  {REDACTED}\n"),
        (base64.b64encode(PEM.encode()).decode(), REDACTED),
        (base64.b64encode(gzip.compress(b"anything", mtime=0)).decode(), REDACTED),
        ("https://me:word@example.com/x", "https://REDACTED@example.com/x"),
        ("https://word@example.com/x", "https://REDACTED@example.com/x"),
        ("https://me:wo/rd@example.com/x", "https://REDACTED@example.com/x"),
        (
            "two: postgres://me:wo@rd@db:5432/x cifs://:word@nas",
            "two: postgres://REDACTED@db:5432/x cifs://REDACTED@nas",
        ),
        ("Authorization: Bearer abcdefgh", "Authorization: REDACTED"),
        ("curl -H 'bearer abcdefgh'", "curl -H 'bearer REDACTED'"),
        ("sent Basic bWU6d29yZA==", "sent Basic REDACTED"),
        ("eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl", REDACTED),
        (f"K10{'0a' * 32}::server:word", REDACTED),
        (f"kubeconfig-user-x9k2p:{'b' * 54}", REDACTED),
        (f"ghp_{'A' * 36}", REDACTED),
        ("root:$6$salt$abcdefgh:19000", "root:REDACTED:19000"),
        ("a: 1\nadminPassword: two words\n", "a: 1\nadminPassword: REDACTED\n"),
        ("adminPassword:\n  word\n  word\nb: c\n", "adminPassword:\n  REDACTED\nb: c\n"),
        ("- token: |\n    word\n  b: c", "- token: REDACTED\n  b: c"),
        ('{"a":{"password":"two words"}}', '{"a":{"password":"REDACTED"}}'),
        (r'{"password":"wo\"rd","b":1}', '{"password":"REDACTED","b":1}'),
        (r'{"a":"{\"sshKey\":\"word\"}"}', r'{"a":"{\"sshKey\":\"REDACTED\"}"}'),
        ('{"token":null,"enableSecret":true}', '{"token":null,"enableSecret":true}'),
        ("https://example.com/x?token=word", "https://example.com/x?token=REDACTED"),
        (
            "https://a.blob.core.windows.net/i?sv=2020-08-04&sig=wo%2Frd%3D&sp=r",
            "https://a.blob.core.windows.net/i?sv=2020-08-04&sig=REDACTED&sp=r",
        ),
        (
            "https://s3/i?X-Amz-Credential=AK%2Fs3&X-Amz-Signature=0a1b",
            "https://s3/i?X-Amz-Credential=REDACTED&X-Amz-Signature=REDACTED",
        ),
        ("https://host/i?key=word&arch=amd64", "https://host/i?key=REDACTED&arch=amd64"),
        ("https://host/i?x=Zm9vYmFyYmF6cXV4MTIzNDU2", "https://host/i?x=REDACTED"),
        ("?a=b\\u0026sig=word", "?a=b\\u0026sig=REDACTED"),
        ("DefaultEndpointsProtocol=https;AccountKey=word==;a=b", "DefaultEndpointsProtocol=https;AccountKey=REDACTED"),
        ("PASSWORD='two words' run", "PASSWORD='REDACTED' run"),
        ('["server","--token","two words","--debug"]', '["server","--token","REDACTED","--debug"]'),
        ("server --cluster-secret word", "server --cluster-secret REDACTED"),
        ("server --password=word --debug", "server --password=REDACTED --debug"),
        ("curl -sSu me:word https://h", "curl -sSu REDACTED https://h"),
        ("curl --user 'me:wo|rd' https://h | sh", "curl --user 'REDACTED' https://h | sh"),
        ('["curl","-u","me:word","h"]', '["curl","-u","REDACTED","h"]'),
        ("sshpass -pword ssh h", "sshpass -pREDACTED ssh h"),
        ("sshpass -p 'two words' ssh h", "sshpass -p 'REDACTED' ssh h"),
        ("docker login -u me -p word h", "docker login -u me -p REDACTED h"),
        ("echo 'root:word' | chpasswd", "echo 'root:REDACTED' | chpasswd"),
        ("echo root:word | sudo chpasswd", "echo root:REDACTED | sudo chpasswd"),
        ("chpasswd <<EOF\nroot:word\nEOF", "chpasswdREDACTED"),
        ("echo -n 'two words' | docker login --password-stdin h", "echo -n REDACTED | docker login --password-stdin h"),
        ("echo word | passwd --stdin root", "echo REDACTED | passwd --stdin root"),
        ("[default]\naws_secret_access_key = word\nb = c", "[default]\naws_secret_access_key = REDACTED\nb = c"),
        ("curl -b 'session=word' h", "curl -b 'REDACTED' h"),
        ("ctr images pull --user me:word x", "ctr images pull --user REDACTED x"),
        ("openssl enc -k word -in x", "openssl enc -k REDACTED -in x"),
        ("htpasswd -nbB me word", "htpasswd -nbB me REDACTED"),
        (
            "kubectl create secret generic x --from-literal=a=word",
            "kubectl create secret generic x --from-literal=a=REDACTED",
        ),
        ("<password>word</password>", "<password>REDACTED</password>"),
        ('secret.v1 a/b modified {"data":{"x":"d29yZA=="}}; b', "secret.v1 a/b modified REDACTED"),
        ("https%3A%2F%2Fme%3Aword%40mirror.example.org%2Fx", "https%3A%2F%2FREDACTED%40mirror.example.org%2Fx"),
        ("https%253A%252F%252Fme%253Aword%2540mirror%252Fx", "https%253A%252F%252FREDACTED%2540mirror%252Fx"),
        ("https://me%3Aword%40mirror/x", "https://REDACTED%40mirror/x"),
        ("http%3a//me:word@mirror/x", "http%3a//REDACTED@mirror/x"),
        (r"https:\/\/me:word@mirror\/x", r"https:\/\/REDACTED@mirror\/x"),
        ("//me:word@mirror/x", "//me:REDACTED@mirror/x"),
        ("pull me:word@mirror.example.org/x", "pull me:REDACTED@mirror.example.org/x"),
        (
            "vault kv put -mount=secret site a=word b='two words'",
            "vault kv put -mount=secret site a=REDACTED b='REDACTED'",
        ),
        ("vault login word && ls", "vault login REDACTED && ls"),
        ("vault login -no-print word", "vault login -no-print REDACTED"),
        ("mc --quiet alias set s https://h me word --api S3v4", "mc --quiet alias set s https://h REDACTED --api S3v4"),
        ("mc config host add site https://minio me word", "mc config host add site https://minio REDACTED"),
        ("consul kv put site/motto word", "consul kv put site/motto REDACTED"),
        ("aws configure set aws_secret_access_key word", "aws configure set aws_secret_access_key REDACTED"),
        ("etcdctl --endpoints x user add root:word", "etcdctl --endpoints x user add root:REDACTED"),
        ("etcdctl --user root:word get /", "etcdctl --user REDACTED get /"),
        ("rabbitmqctl -q change_password me word", "rabbitmqctl -q change_password me REDACTED"),
        ("cryptsetup open /dev/sda x <<< 'two words'", "cryptsetup open /dev/sda x <<< REDACTED"),
        ("echo word | sudo -S ls", "echo REDACTED | sudo -S ls"),
        ("login as me with password word failed", "login as me with password REDACTED failed"),
        ("cannot log in using the passphrase 'word'", "cannot log in using the passphrase 'REDACTED'"),
        ("the password is word, and not b", "the password is REDACTED, and not b"),
        ('the password "two words" is wrong', 'the password "REDACTED" is wrong'),
        ("wrong password hunter2", "wrong password REDACTED"),
        ("API key 0a1b2c3d is not known", "API key REDACTED is not known"),
        ("me with word as password", "me with REDACTED as password"),
        ("credentials me:word are wrong", "credentials me:REDACTED are wrong"),
        ("db:5432:app:me:wo\\:rd", "db:5432:app:me:REDACTED"),
        ("a: 1\n  db.example.com:15432:*:me:word\n", "a: 1\n  db.example.com:15432:*:me:REDACTED\n"),
        ('{"pin":"0123","PINs":1}', '{"pin":"REDACTED","PINs":1}'),
        ("pin: 0123\npinned: true", "pin: REDACTED\npinned: true"),
        (r'send "wo\$rd\r"; send "yes\r"', r'send "REDACTED\r"; send "yes\r"'),
        ('expect "assword:"\n  send "two words\\n"', 'expect "assword:"\n  send "REDACTED\\n"'),
    ],
)
def test_a_secret_is_hidden_where_it_stands_in_a_text(text: str, kept: str) -> None:
    assert hidden({"any": [text]}) == {"any": [kept]}
    assert hidden(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "s3://backups@us-east-1/",
        "https://releases.example.com:8443/harvester/v1.8.0.iso",
        "docker://registry:5000/image@sha256:0123",
        "Secret fleet-local/custom-1-machine-plan: annotation rke.cattle.io/pre-drain is absent",
        '{"deleteEmptyDirData":true,"enabled":true,"force":true,"timeout":0}',
        "secretName: grafana",
        "rke2 server --node-name a",
        "Secret fleet-local/rancher-token: not found",
        'secrets "x" is forbidden: User "y" cannot get it',
        "--allow-secrets writes it anyway",
        "http://192.0.2.1:8080/a b@c",
        "Basic authentication is required",
        "docker run -p 80:80 image",
        "echo done | tee /tmp/log --append",
        "token = ",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "image registry.example.org/a:v1@sha256:0123",
        "mailto:me@example.org",
        "git@example.org:a/b",
        "https%3A%2F%2Fmirror%2Fa%40b",
        "https://mirror/a%40b",
        "NodeUpgrade/Token: Job a/b: condition Complete is absent",
        "NodeUpgrade/PreDrain/token-1: Job a/b: condition Complete is absent",
        "Node token-1: condition Ready is False",
        "vault kv get secret/x",
        "mc alias list",
        "<<<<<<< HEAD",
        "unexpected token 'end1of2file'",
        "with password authentication, the password is not shown",
        "the password was set 2 days ago, and the token has expired",
        "wrong password for user admin1234",
        "api key of node charlie-2-tink-system",
        "pass the token as password",
        "values.yaml:12:image:repository:tag",
        "10.0.0.1:6443:tcp up",
        "fe80:1234:5432:1:2 52:54:00:12:34:56",
        "2026-01-01T10:00:00:a:b system:serviceaccount:harvester-system:harvester",
        "arn:aws:iam::123456789012:role/x urn:ietf:params:xml:ns",
        "the GPU is pinned, dedicatedCpuPlacement: true, cpuPin: true, pins: 4",
        'could not send "GET /healthz"; send "$answer\\r"; send "systemctl status a\\r"',
        "a" * 100_000 + ":",
    ],
)
def test_a_text_without_a_secret_stays(text: str) -> None:
    assert hidden({"any": text}) == {"any": text}


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["curl", "-u", "me:word", "h"], ["curl", "-u", REDACTED, "h"]),
        (["server", "--token", "two words", "--debug"], ["server", "--token", REDACTED, "--debug"]),
        (["sh", "-c", "echo root:word | chpasswd"], ["sh", "-c", "echo root:REDACTED | chpasswd"]),
        (["sshpass", "-p", "two words"], ["sshpass", "-p", REDACTED]),
        (["a", "", "b"], ["a", "", "b"]),
    ],
)
def test_the_words_of_a_command_are_read_together(words: list[str], kept: list[str]) -> None:
    assert hidden({"args": words}) == {"args": kept}


def test_names_of_steps_and_nodes_are_no_names_of_values() -> None:
    status = {"steps": {"CopySecret": {"records": {"Token/n": {"state": "Done", "captured": {"token": "word"}}}}}}
    record = {"state": "Done", "captured": {"token": REDACTED}}
    assert hidden(status) == {"steps": {"CopySecret": {"records": {"Token/n": record}}}}
    assert hidden({"steps": {"A": {"done": {"n": {"Token": "2026"}}}}}) == {
        "steps": {"A": {"done": {"n": {"Token": "2026"}}}}
    }


def test_what_is_on_loan_is_hidden_as_in_its_object() -> None:
    loan = {
        "apiVersion": "v1",
        "kind": "Secret",
        "name": "s",
        "path": "/data/a~1b",
        "value": "d29yZA==",
        "absent": False,
    }
    assert hidden([loan]) == [{**loan, "value": REDACTED}]
    assert hidden({**loan, "kind": "ConfigMap"})["value"] == "d29yZA=="


@pytest.mark.parametrize(
    "piece",
    ["x:y@", "x://", "x://y:", "a:b:c@", "https://a:b", "?a=", "--pw ", "curl -u ", "password send ", "a:5432:b:"],
)
def test_a_text_of_many_pieces_takes_no_longer_for_each(piece: str) -> None:
    """An eighth of the pieces, eight times: what is quadratic takes eight times longer in one."""
    redactor = packaged_redactor()

    def seconds(times: int, count: int) -> float:
        start = time.process_time()
        for _ in range(times):
            redactor.text(piece * count)
        return time.process_time() - start

    assert min(seconds(1, 8000) for _ in range(3)) < 4 * min(seconds(8, 1000) for _ in range(3)) + 0.05


def test_the_same_value_has_the_same_number() -> None:
    redactor = Redactor(packaged_rules(), numbered)
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "d29yZA==", "b": "eA=="}, "stringData": {"c": "word"}}
    assert redactor.body(secret)["data"] == {"a": "REDACTED-1", "b": "REDACTED-2"}
    assert redactor.body(secret)["stringData"] == {"c": "REDACTED-1"}
    assert redactor.value({"token": "x"}) == {"token": "REDACTED-2"}
    assert redactor.text("token: y and https://word@h") == "token: REDACTED-3"


def test_what_is_built_of_redacted_parts_is_as_if_it_was_redacted_as_a_whole() -> None:
    redactor = Redactor(packaged_rules(), numbered)
    for text in ("https://me:word@h/x?sig=abc", "Bearer abcdefgh", "password: word"):
        message = f"Image a/b: failed: {redactor.text(text)}; next: try again"
        assert without_numbers(redactor.text(message)) == without_numbers(
            redactor.text(f"Image a/b: failed: {text}; next: try again")
        )


def test_of_an_address_on_the_command_line_nothing_is_shown_that_may_be_secret() -> None:
    assert packaged_redactor().argument("--release=https://me@h/r.yaml?x=y#z") == "--release=https://h/r.yaml"
    assert bare_address("r.yaml?x") == "r.yaml?x"


COPIES = [
    *("kubectl.kubernetes.io/last-applied-configuration", "objectset.rio.cattle.io/applied", "example.com/lastApplied"),
    *("operator.cdi.kubevirt.io/lastAppliedConfiguration", "management.harvesterhci.io/approved-objects"),
    *("kapp.k14s.io/original", "cluster.x-k8s.io/conversion-data", "rke2.io/node-args"),
]


@pytest.mark.parametrize("name", COPIES)
def test_an_annotation_that_repeats_an_object_is_left_out(name: str) -> None:
    body = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "annotations": {name: "{}", "a": "b"}}}
    assert packaged_redactor().body(body)["metadata"] == {"name": "x", "annotations": {"a": "b"}}
