"""Rendering a diagnosis: diagnosis in, text out; nothing is computed here."""
