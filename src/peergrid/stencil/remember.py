"""Answers about a problem, remembered as long as it lives: a session that makes many problems keeps none of them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from peergrid.stencil.problem import Problem

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
AboutProblem = Callable[Concatenate[Problem, Given], Answer]


def remembered(most: int = 64) -> Callable[[AboutProblem[Given, Answer]], AboutProblem[Given, Answer]]:
    """For functions of a problem and hashable arguments: keep the `most` latest answers about each problem with it.

    A cache of the function's own would keep every problem it was asked about, with the arrays its fields start from.
    """

    def decorate(function: AboutProblem[Given, Answer]) -> AboutProblem[Given, Answer]:
        @wraps(function)
        def answer(problem: Problem, /, *args: Given.args, **named: Given.kwargs) -> Answer:
            if function not in problem.answers:
                problem.answers[function] = lru_cache(maxsize=most)(_asking(function, problem))
            found: Answer = problem.answers[function](*args, **named)
            return found

        return answer

    return decorate


def _asking(function: AboutProblem[Given, Answer], problem: Problem) -> Callable[Given, Answer]:
    """The function of this problem; it does not keep the problem alive, which keeps it."""
    reference = weakref.ref(problem)

    def ask(*args: Given.args, **named: Given.kwargs) -> Answer:
        return function(cast(Problem, reference()), *args, **named)

    return ask
