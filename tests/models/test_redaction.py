"""Nothing secret is shown: names, addresses and texts."""

import re
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab import Recipe
from axislab.errors import ConfigError
from axislab.models.classify import classify
from axislab.models.deltas import Delta, DeltaKind
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.masking import MaskedDeltas, telling
from axislab.models.redact import MASK, is_secret_name, mask_url, redact, secret_place, url_secrets


@pytest.mark.parametrize(
    "name",
    ["api_key", "aws_secret_access_key", "azure_ad_token", "extra_headers", "password", "Auth"],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["max_tokens", "seed", "stop_token_ids", "organization", "top_k"])
def test_names_of_other_parameters(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("https://me:pw@host:1/v1", "https://***@host:1/v1"),
        ("https://token@host/v1", "https://***@host/v1"),
        ("https://host/v1?sig=abc&v=2", "https://host/v1?sig=***&v=***"),
        ("https://host/v1#frag", "https://host/v1"),
        ("not a url", "not a url"),
    ],
)
def test_addresses_are_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked
    assert all(secret in url for secret in url_secrets(url))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect API key provided: sk-abcdefgh1234.", f"Incorrect API key provided: {MASK}"),
        ("key AIzaSyA1234567890123456789012 is bad", f"key {MASK} is bad"),
        ("Authorization: Bearer abc.def-ghi_1", f"Authorization: Bearer {MASK}"),
        ("gsk_0123456789abcdef", MASK),
        ("the task-based sk-learn", "the task-based sk-learn"),
    ],
)
def test_what_is_shaped_like_a_key_is_masked(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_values_of_the_environment_are_masked_by_the_names_they_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_API_KEY", "plain-words-here")
    monkeypatch.setenv("MY_TOKEN", "short")
    monkeypatch.setenv("MY_FOLDER", "some-folder-name")
    text = "plain-words-here short some-folder-name"
    assert redact(text) == f"{MASK} short some-folder-name"


@given(st.text(min_size=4), st.text(), st.text())
def test_a_given_secret_is_never_left(secret: str, before: str, after: str) -> None:
    assert secret not in redact(before + secret + after, [secret]) or secret in MASK * 3


def test_the_longer_of_two_secrets_goes_first() -> None:
    assert redact("abcdef", ["abcd", "abcdef", "", "ab"]) == MASK


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "localhost:8000/v1?token=hunter2",
        "user:hunter2@host:8000/v1",
        "hunter2@host/v1",
        "http://",
        "http:///v1",
        "http://user:hunter2@[::1/v1",
        "http://user:hunter2@host:99999/v1",
        "http://user:hunter2@host:port/v1",
        8000,
    ],
)
def test_what_is_no_address_is_refused_without_showing_what_may_be_secret(url: Any) -> None:
    with pytest.raises(ConfigError, match="is no address") as caught:
        LiteLLMModel("openai/x", api_base=url, api_key="k")
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("url", ["http://host", "https://user:pw@[::1]:8000/v1?key=x"])
def test_an_address_with_scheme_and_host_is_taken(url: str) -> None:
    assert "pw" not in repr(LiteLLMModel("openai/x", api_base=url, api_key="k"))


def test_a_key_is_a_text_and_is_not_shown_if_it_is_none() -> None:
    with pytest.raises(ConfigError, match="give it as text") as caught:
        LiteLLMModel("openai/x", api_key=b"hunter2")  # type: ignore[arg-type]
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("before", range(255, 305, 3))
def test_no_part_of_a_secret_is_left_where_a_long_message_is_cut(before: int) -> None:
    secret = "0123456789abcdef0123456789abcdef"
    error = classify(ValueError("p" * before + " " + secret), model="m", secrets=[secret])
    assert "0" not in str(error)
    assert len(str(error)) < 350


@pytest.mark.parametrize(
    ("extra", "place"),
    [
        ({"api_key": "x"}, "extra.api_key"),
        ({"extra_headers": {"Authorization": "Bearer x"}}, "extra.extra_headers.Authorization"),
        ({"a": [{"b": "sk-abcdefgh12345"}]}, "extra.a[0].b"),
        ({"aws_secret_access_key": "x"}, "extra.aws_secret_access_key"),
        ({"access_token": "x"}, "extra.access_token"),
    ],
)
def test_a_secret_among_the_sampling_parameters_is_refused_before_it_is_written(
    extra: dict[str, Any], place: str
) -> None:
    assert secret_place(extra, "extra") == place
    with pytest.raises(ConfigError, match=re.escape(f"{place} looks like a secret")) as caught:
        Recipe().with_(extra=extra)
    assert "sk-abc" not in str(caught.value)


@pytest.mark.parametrize(
    "extra",
    [
        {"extra_headers": {"X-Trace": "1"}},
        {"prompt_cache_key": "a"},
        {"max_completion_tokens": 5},
        {"stop_token": "</s>", "include_stop_token": True},
        {"logit_bias": {"50256": -100}, "token": None},
        {"user": "sk-1"},
    ],
)
def test_parameters_that_only_sound_like_secrets_are_taken(extra: dict[str, Any]) -> None:
    assert Recipe().with_(extra=extra).config.sampling.extra == extra


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"x"])
def test_sampling_parameters_are_json(value: Any) -> None:
    with pytest.raises(ConfigError, match="is not JSON"):
        Recipe().with_(extra={"a": value})


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(0, 3), st.booleans())
def test_a_streamed_secret_is_masked_wherever_it_is_cut(
    cuts: list[int], copies: int, tail: bool
) -> None:
    secret = "sk-sk-planted-0123456789"
    text = f"so it is {secret} and sk-" * copies + "the end" + secret[:7] * tail
    told: list[str] = []
    hear = MaskedDeltas(lambda delta: told.append(delta.text), (secret,))
    place = 0
    for size in [*cuts, len(text) + 1]:
        hear(Delta(kind=DeltaKind.TEXT, text=text[place : place + size]))
        place += size
    wanted = text.replace(secret, MASK)
    assert wanted.startswith("".join(told))
    assert len(wanted) - len("".join(told)) < len(secret), "no more than a beginning waits"
    assert all("planted" not in piece for piece in told)


def test_a_streamed_secret_that_begins_with_another_is_masked_whole() -> None:
    told: list[str] = []
    hear = MaskedDeltas(
        lambda d: told.append(d.text), ("abc1234567XYZ789", "abc1234567", "67zzz99")
    )
    for piece in ("it is abc1234567", "XYZ789, or abc12345", "67, ", "or abc1234567", "zz end"):
        hear(Delta(kind=DeltaKind.TEXT, text=piece))
    assert "".join(told) == "it is ***, or ***, or ***zz end"
    assert not any("XYZ" in piece or "abc" in piece for piece in told)


@pytest.mark.parametrize("harmless", ["2024-10-21", "us-east-1", "http://localhost:8888", "none"])
def test_what_is_no_secret_wherever_it_stands_is_left_in_replies(harmless: str) -> None:
    assert harmless not in telling([harmless, "sk-0123456789"])
    assert "sk-0123456789" in telling([harmless, "sk-0123456789"])
