"""One suite for two stages: what the embedded cluster answers is what a real kube-apiserver 1.35.4 answers.

`cases/*.yaml` say what is asked; `answers/*.yaml` are what the real server said, written by `python -m
conformance.record`. Both stages are compared with those answers. Where they differ the embedded cluster is wrong.
"""
