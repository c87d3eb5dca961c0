"""The tools of an agent with their policy and middleware, shared by any number of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from axislab.config import ToolPolicy
from axislab.errors import ToolDefinitionError
from axislab.messages import ToolCall, ToolSpec
from axislab.tools.base import Tool
from axislab.tools.calls import ArgumentHook, prepare_call
from axislab.tools.calls import PreparedCall as PreparedCall
from axislab.tools.middleware import After, Approve, Before
from axislab.tools.resolve import resolve_tools
from axislab.tools.session import Round as Round
from axislab.tools.session import ToolSession as ToolSession
from axislab.tools.session import Workshop


class ToolExecutor:
    """Tools, a policy and middleware; all state of a run lives in the session it begins.

    Args:
        tools: Tools, collections of them, or functions without arguments that make them.
        policy: Limits and habits.
        before: Functions that may allow, deny, edit or ask; see `middleware.Before`.
        after: Functions that may edit a result; see `middleware.After`.
        argument_hook: The last rule of argument repair; only asked where repair is on.

    Raises:
        ToolDefinitionError: Something listed is no tool or no function, or two tools share a name.

    Examples:
        >>> import asyncio
        >>> from axislab.tools.base import tool
        >>> @tool
        ... def double(n: int) -> int:
        ...     return 2 * n
        >>> session = ToolExecutor([double]).begin_task()
        >>> call = ToolCall(id="c1", name="double", arguments='{"n": 21}')
        >>> asyncio.run(session.run_round([call])).results[0].content
        '42'
    """

    def __init__(
        self,
        tools: Iterable[Any] = (),
        policy: ToolPolicy | None = None,
        *,
        before: Sequence[Before] = (),
        after: Sequence[After] = (),
        argument_hook: ArgumentHook | None = None,
    ) -> None:
        for function in (*before, *after):
            if not callable(function):
                raise ToolDefinitionError(
                    f"middleware is a function of the call, got {function!r}: list functions"
                )
        self._workshop = Workshop(
            tools=MappingProxyType({made.name: made for made in resolve_tools(tools)}),
            policy=policy or ToolPolicy(),
            before=tuple(before),
            after=tuple(after),
            hook=argument_hook,
        )

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return self._workshop.tools

    @property
    def policy(self) -> ToolPolicy:
        """Limits and habits."""
        return self._workshop.policy

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told about the tools."""
        return tuple(made.spec for made in self.tools.values())

    def begin_task(self, *, approve: Approve | None = None) -> ToolSession:
        """Begin a run: a session with budgets, memory and metrics of its own.

        Args:
            approve: Asked about calls that need a person; without it they are rejected.
        """
        return ToolSession(self._workshop, approve=approve)

    def prepare(self, call: ToolCall) -> PreparedCall:
        """Read and repair the arguments of a call; the argument hook is called at most once."""
        shop = self._workshop
        return prepare_call(call, shop.tools.get(call.name), policy=shop.policy, hook=shop.hook)
