"""A cache of results about a problem, which lives as long as the problem, so that many problems do not fill the
memory.
"""

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
    """Decorate a function of a problem and hashable arguments: the problem keeps its `most` latest results.

    A cache in the function would keep every problem alive, with the first values of its fields.
    """

    def decorate(function: AboutProblem[Given, Answer]) -> AboutProblem[Given, Answer]:
        @wraps(function)
        def answer(problem: Problem, /, *args: Given.args, **named: Given.kwargs) -> Answer:
            if function not in problem.answers:
                problem.answers[function] = lru_cache(maxsize=most)(_bound(function, problem))
            found: Answer = problem.answers[function](*args, **named)
            return found

        return answer

    return decorate


def _bound(function: AboutProblem[Given, Answer], problem: Problem) -> Callable[Given, Answer]:
    """The function for this problem, which does not keep the problem alive."""
    reference = weakref.ref(problem)

    def ask(*args: Given.args, **named: Given.kwargs) -> Answer:
        return function(cast(Problem, reference()), *args, **named)

    return ask
