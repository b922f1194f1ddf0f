from matplotlib.figure import Figure

from kernelcast.reports.chart_drawing import draw_charts
from kernelcast.reports.charts import Axis, Chart, Point, Series


def _chart(y_name: str) -> Chart:
    line = Series(name="a", kind="line", points=[Point(x=1.0, y=1.0), Point(x=2.0, y=3.0)])
    return Chart(x=Axis(title="size"), y=Axis(title=y_name), series=(line,))


def test_what_all_panels_share_is_written_once() -> None:
    """Writes the name of an axis beside all panels, and at each where they differ."""
    figure = Figure(layout="constrained")
    draw_charts(figure, _chart("time"), _chart("rate"), _chart("time"))
    assert figure.get_supxlabel() == "size"
    assert {one.get_xlabel() for one in figure.axes} == {""}
    assert [one.get_ylabel() for one in figure.axes] == ["time", "rate", "time", ""]
    assert figure.get_supylabel() == ""
