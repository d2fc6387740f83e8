"""Commands that touch a cluster, or rehearse on one. Each is a row of `COMMANDS` and a module imported when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from renderer.cli.commands import CommandGroup, Row

COMMANDS: Mapping[str, Row] = {
    "new": Row(target="reconcile.cli.new:new", help="Print a new plan.", group=CommandGroup.REVIEW),
    "validate": Row(
        target="reconcile.cli.validate:validate", help="Check a plan and its inputs.", group=CommandGroup.REVIEW
    ),
    "preflight": Row(
        target="reconcile.cli.preflight:preflight",
        help="Check whether the cluster can be upgraded.",
        group=CommandGroup.REVIEW,
    ),
    "rehearse": Row(
        target="reconcile.cli.rehearse:rehearse",
        help="Run the whole upgrade on a simulated cluster.",
        group=CommandGroup.REVIEW,
    ),
    "facts": Row(
        target="reconcile.cli.facts:facts",
        help="Collect the inputs of a rendering from the cluster.",
        group=CommandGroup.RUN,
    ),
    "diff": Row(
        target="reconcile.cli.diff:diff",
        help="Show what each phase would change on the cluster.",
        group=CommandGroup.RUN,
    ),
    "approve": Row(
        target="reconcile.cli.approve:approve",
        help="Seal a reviewed rendering: nothing else may run.",
        group=CommandGroup.RUN,
    ),
    "apply": Row(target="reconcile.cli.apply:apply", help="Run the upgrade from this machine.", group=CommandGroup.RUN),
    "run": Row(
        target="reconcile.cli.run:run",
        help="Run the manager, as the in-cluster Deployment does.",
        group=CommandGroup.RUN,
    ),
    "status": Row(
        target="reconcile.cli.status:status",
        help="Show the progress of a plan, or the plans of many clusters.",
        group=CommandGroup.CONTROL,
    ),
    "explain": Row(
        target="reconcile.cli.explain:explain",
        help="Explain why a plan waits and what to do.",
        group=CommandGroup.CONTROL,
    ),
    "logs": Row(target="reconcile.cli.logs:logs", help="Print the logs of a plan's pods.", group=CommandGroup.CONTROL),
    "collect-logs": Row(
        target="reconcile.cli.log_collection:collect_logs",
        help="Collect the logs of the plans' pods in a folder.",
    ),
    "report": Row(
        target="reconcile.cli.report:report",
        help="Write a report on the run of a plan.",
        group=CommandGroup.CONTROL,
    ),
    "diagnose": Row(
        target="reconcile.cli.diagnose:diagnose",
        help="Find the causes of trouble in a cluster or a support bundle.",
        group=CommandGroup.CONTROL,
    ),
    "verify": Row(
        target="reconcile.cli.verify:verify",
        help="Check whether an upgrade has left the cluster as expected.",
        group=CommandGroup.CONTROL,
    ),
    "pause": Row(
        target="reconcile.cli.control:pause", help="Hold a node before its upgrade.", group=CommandGroup.CONTROL
    ),
    "resume": Row(target="reconcile.cli.control:resume", help="Release a held node.", group=CommandGroup.CONTROL),
    "accept": Row(
        target="reconcile.cli.control:accept",
        help="Accept the risk of pre-flight checks.",
        group=CommandGroup.CONTROL,
    ),
    "retry": Row(
        target="reconcile.cli.retry:retry", help="Retry the step that has failed.", group=CommandGroup.CONTROL
    ),
    "install": Row(
        target="reconcile.cli.install:install",
        help="Install the manager, or write its manifests.",
        group=CommandGroup.INSTALL,
    ),
    "uninstall": Row(
        target="reconcile.cli.uninstall:uninstall",
        help="Remove the manager from the cluster.",
        group=CommandGroup.INSTALL,
    ),
    "vm-live-migrate-detector": Row(
        target="reconcile.cli.toolkit:vm_live_migrate_detector",
        help="List the virtual machines of a node that cannot be migrated.",
    ),
    "restore-vm": Row(
        target="reconcile.cli.toolkit:restore_vm",
        help="Restart the virtual machines that were stopped for a node.",
    ),
    "gate": Row(target="reconcile.cli.gate:gate", help="Wait until the gates of a phase have passed."),
    "version-guard": Row(
        target="reconcile.cli.toolkit:version_guard",
        help="Check whether the versions in a plan's status allow the upgrade.",
    ),
    "abort": Row(
        target="reconcile.cli.control:abort",
        help="Abort a plan and restore what it changed.",
        group=CommandGroup.CONTROL,
    ),
}
