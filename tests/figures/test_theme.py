"""Colours under simulated colour blindness (Machado, Oliveira and Fernandes 2009, severity 1), by distance in CIELAB."""

from itertools import combinations

import numpy as np
import pytest

from memviz.core.plan import Action
from memviz.core.trace import Category
from memviz.figures.theme import CATEGORY_COLORS, DARK, LIGHT, template

VISION = {
    "full": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
ACTION_COLORS = [{action: look.action(action) for action in Action} for look in (LIGHT, DARK)]
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color: str) -> np.ndarray:
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("colors", [CATEGORY_COLORS, *ACTION_COLORS], ids=["categories", "actions-light", "actions-dark"])
def test_colours_are_told_apart_with_any_vision(colors, vision):
    seen = {name: lab(VISION[vision] @ linear(color)) for name, color in colors.items()}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_the_contrast_that_wcag_asks_for(look):
    def luminance(color):
        return TO_XYZ[1] @ linear(color)

    for text in (look.ink, look.muted):
        dark, light = sorted([luminance(text), luminance(look.paper)])
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_every_category_has_a_colour():
    assert set(CATEGORY_COLORS) == set(Category)


@pytest.mark.parametrize("dark", [False, True])
def test_the_button_that_sends_data_to_a_server_is_off(dark):
    assert "sendDataToCloud" in template(dark=dark).layout.modebar.remove
