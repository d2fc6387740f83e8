"""The only room of the renderer that touches disk and network: inputs and templates in, a rendered tree out."""
