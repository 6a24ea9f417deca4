"""The report: one HTML file that shows a fitted model, the states it found and the course of every sequence."""

from .page import write_report

__all__ = ["write_report"]
