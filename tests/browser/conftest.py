"""One JupyterLab and one Chromium for all browser tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    pytest.importorskip("playwright", reason="playwright is not installed")
    from labpage import Browser, missing

    if (why := missing()) is not None:
        pytest.skip(why)
    browser = Browser(tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyter"))
    yield browser
    browser.stop()
