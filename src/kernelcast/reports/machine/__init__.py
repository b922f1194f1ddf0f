"""What people are told of a machine description: tables, figures and how numbers are written."""

from kernelcast.reports.machine.figures import ReportFigure, label_curve, plan_figures
from kernelcast.reports.machine.tables import Cell, ReportTable, list_headlines, make_tables

__all__ = [
    "Cell",
    "ReportFigure",
    "ReportTable",
    "label_curve",
    "list_headlines",
    "make_tables",
    "plan_figures",
]
