import pytest

from tcplab.analysis.statistics import coefficient_of_variation, grade


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10.0, 10.5, 9.5], "high"),
        ([10.0, 12.0, 8.0], "medium"),
        ([10.0, 10.1], "medium"),
        ([10.0, 15.0], "low"),
        ([10.0, 20.0, 1.0], "low"),
        ([10.0], "low"),
        ([], "low"),
        ([0.0, 0.0, 0.0], "deterministic"),
        ([7.0, 7.0], "deterministic"),
    ],
)
def test_the_grade_follows_number_and_variation(values: list[float], expected: str) -> None:
    assert grade(values) == expected


def test_the_coefficient_of_variation_is_relative_to_the_mean() -> None:
    assert coefficient_of_variation([8.0, 12.0]) == pytest.approx(2.8284271 / 10)
