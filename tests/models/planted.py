"""`python -m tests.models.planted URL FOLDER`: uses secrets in every way, and shows everything.

What is shown goes to stdout, stderr and files of FOLDER, where the test looks for the secrets.
They come as JSON on stdin, so that no argument and no line of the program holds them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import axislab as al
from axislab.messages import Message
from axislab.models.base import ModelRequest
from axislab.models.litellm_model import LiteLLMModel

FRAMES = ("runs_df", "steps_df", "messages_df", "budgets_df", "tools_df", "transitions_df")
BEHAVIOURS = ("ok", "echo", "tell", "html", "close", "status-500", "hang")
"""What the server does; `echo` quotes the request in its error, `tell` in its reply."""
NOBODY = "http://127.0.0.1:9/v1"


def show(*things: object) -> None:
    """Print each in the ways a notebook and a terminal do."""
    for thing in things:
        print(repr(thing), str(thing))
        for name in ("_repr_html_", "_repr_mimebundle_"):
            if (ask := getattr(thing, name, None)) is not None:
                print(ask())


def show_problem(problem: BaseException) -> None:
    """Print an exception, with the variables of every frame: its own, and those under it."""
    links: list[BaseException | None] = [problem]
    while links:
        link = links.pop()
        if link is None:
            continue
        print(repr(link), str(link), vars(link))
        told = traceback.TracebackException.from_exception(link, capture_locals=True)
        print("".join(told.format()))
        links.append(getattr(link, "original", None))


def addressed(url: str, secrets: dict[str, str]) -> str:
    """The address with a user, a password and a query."""
    parts = urlsplit(url)
    netloc = f"{secrets['user']}:{secrets['password']}@{parts.netloc}"
    return urlunsplit((parts.scheme, netloc, parts.path, f"sig={secrets['query']}", ""))


class Way:
    """Options of a model that no traceback shows: what a user's own variables hold is theirs."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def lab(self, behaviour: str, folder: Path, cache: Path) -> al.Lab:
        """A lab with them."""
        return al.Lab(f"openai/{behaviour}", folder=folder, cache=cache, **self.options)

    def model(self, behaviour: str) -> LiteLLMModel:
        """A model with them."""
        return LiteLLMModel(f"openai/{behaviour}", timeout=1.0, **self.options)


def ways(url: str, secrets: dict[str, str]) -> dict[str, Way]:
    """Ways to give a secret."""
    key = secrets["argument"]
    return {
        "environment": Way(api_base=url),
        "argument": Way(api_base=url, api_key=key),
        "address": Way(api_base=addressed(url, secrets), api_key=key),
        "query": Way(api_base=f"{url}?sig={secrets['query']}", api_key=key),
        "nobody": Way(api_base=f"{NOBODY}?sig={secrets['query']}", api_key=key),
        "headers": Way(
            api_base=url,
            api_key=key,
            extra_headers={"X-Gateway": secrets["header"]},
            extra_body={"session": {"token": secrets["body"]}},
        ),
    }


def show_runs(lab: al.Lab, folder: Path) -> None:
    """Run and show everything there is of the runs."""
    recipe = al.recipes.boxed_math(attempts=2, backoff=0.0, request_timeout=1.0)
    lab.budget(tokens=10**6)
    runs = lab.run_many({"a": recipe}, ["What is 2 + 2?"], progress=False)
    handle = lab.start(recipe, "What is 3 + 3?", arm="b")
    run = handle.result()
    show(lab, runs, run, handle, recipe, lab.model, lab.cache, lab.spent, run.trace)
    print(recipe.to_yaml(), recipe.to_dict(), dict(lab.model.info))
    print(lab.estimate(recipe, ["What is 2 + 2?"]).to_csv())
    for name in FRAMES:
        getattr(al, name)([*runs, run]).to_csv(folder / f"{name}-{id(lab)}.csv")
    for each in (*runs, run):
        try:
            each.raise_for_status()
        except al.AxislabError as problem:
            show_problem(problem)
            if problem.__cause__ is not None:
                show_problem(problem.__cause__)
        if each.cause is not None:
            show_problem(each.cause)


def show_call(behaviour: str, way: Way) -> None:
    """Call the model directly, where nothing stands between its error and a notebook."""
    model = way.model(behaviour)
    show(model)
    try:
        reply = asyncio.run(model.complete(ModelRequest(messages=[Message.user("Hello?")])))
    except al.ModelError as problem:
        show_problem(problem)
        traceback.print_exc()
    else:
        show(reply)


def show_refusals(url: str, secrets: dict[str, str]) -> None:
    """Mistakes with secrets in them."""
    for wrong in (
        lambda: al.Lab("openai/ok", api_base=addressed(url, secrets).partition("//")[2]),
        lambda: al.Lab("openai/ok", api_base=url, api_key=secrets["argument"].encode()),
        lambda: al.Recipe().with_(extra={"api_key": secrets["body"]}),
        lambda: al.Lab(al.ScriptedModel(["x"]), api_key=secrets["argument"]),
        lambda: al.Lab("opnai/ok", api_base=addressed(url, secrets), api_key=secrets["argument"]),
        lambda: al.Lab("openai/ok", api_kee=secrets["argument"]),
    ):
        try:
            show(wrong())
        except al.AxislabError as problem:
            print(repr(problem), traceback.format_exc())


def main(url: str, folder: Path) -> None:
    """Do it all."""
    warnings.simplefilter("always")
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    secrets = json.load(sys.stdin)
    for name, way in ways(url, secrets).items():
        for behaviour in BEHAVIOURS if name != "nobody" else ("ok",):
            for stream in (sys.stdout, sys.stderr):
                print(f"--- {name} {behaviour}", file=stream, flush=True)
            traces = folder / f"{name}-{behaviour}"
            show_runs(way.lab(behaviour, traces, folder / f"{name}.sqlite"), folder)
            show_call(behaviour, way)
    show_refusals(url, secrets)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
