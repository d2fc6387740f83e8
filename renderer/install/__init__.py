"""The manager's own manifests: values and `templates/install/` into objects, and these as files for each format.

Pure: no file is read or written here, no cluster is known. One source serves all formats: the chart's templates are
made of the same text that is rendered here (`renderer.templating.go_templates`).
"""
