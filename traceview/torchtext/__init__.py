"""Texts that torch writes into logs, traces and profiles: each kind is read in one module here."""
