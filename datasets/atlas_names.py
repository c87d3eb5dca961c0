"""Invented names for the atlas: pronounceable, distinct, with some close pairs on purpose."""

from __future__ import annotations

import random
from collections.abc import Iterator


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def choices(text: str) -> list[str]:
    """The parts of a text between bars."""
    return text.split("|")


ONSETS = words("b br c d dr f fl g gl h j k l m n p q r s sk st t th tr v w y z")
VOWELS = words("a e i o u")
MIDDLES = words("b d f g l ld ll lm lv m mb n nd ng nt p r rd rl rm rn rr rv s sk st t v z")
ENDS_AFTER = {
    "a": words("l n r s m nd rn y th"),
    "e": words("l n r s m th ss nd rn y"),
    "i": words("l n r s m th ss"),
    "o": words("l n r s m th nd rn w"),
    "u": words("l n r s m th nd rn"),
}
"""How a root may end, by its last vowel."""
CLASHES = words("quu yi wu iy uw zz thth neg nig pin pis wif bum cum germ")
"""What no root may hold: hard to say, or too close to a word."""
COUNTRY_ENDS = words("ia ea aria ovia and")
REAL = frozenset(
    words("bolder bolivia botand brandon jordan laser lasor londia midas serdia tidal visor")
)
"""Roots that came out as names or words that exist."""

FIRST_NAMES = words("""
Ilo Veska Tamsel Brio Nelka Dovan Isbet Koru Maelin Rusko Sevra Thielo Ulmi Yorin
Ambry Bexa Corvo Delwo Efri Fenka Gavro Heska Ivro Jorla Kestin Lirra Mirvo Nadri Orlan Pellin
Quenna Rivda Sorel Tildo Uska Varn Wenna Xandi Ysolt Zemra""")

SHIP_FIRST = words("Grey Copper Silent Amber Winter Scarlet Patient Hollow Early Distant")
SHIP_SECOND = words("Heron Marten Otter Petrel Kestrel Lantern Plover Beacon Thistle Curlew")

ENDINGS = {
    "region": words("Vale Reach Fells Downs Marches"),
    "mountain": words("Peak Tooth Crag"),
    "bridge": words("Bridge Arches Crossing Viaduct"),
    "company": words("Works Lines Mills Foundry Brothers"),
    "treaty": words("Treaty Accord Pact"),
    "festival": choices("Lantern Fair|Boat Days|Harvest Week|Fire Night|Kite Days"),
    "instrument": words("Harp Pipe Drum Lute Viol"),
    "academy": words("Academy College Institute"),
    "newspaper": words("Courier Gazette Herald Mirror"),
}
"""What follows the root, by type."""
BEGINNINGS = {"lake": ["Lake"], "city": ["", "", "", "Port", "Tal", "Fort"]}
"""What comes before it, by type."""


class Names:
    """Deals names, each once; two roots differ in at least two letters unless asked to be close."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._roots: list[str] = []
        self._ships = [f"{a} {b}" for a in SHIP_FIRST for b in SHIP_SECOND]
        rng.shuffle(self._ships)
        self._close: list[tuple[str, str]] = []
        self._dealt = 0

    def name(self, kind: str) -> str:
        """A new name for an entity of this type."""
        self._dealt += 1
        if kind == "ship":
            return self._ships.pop()
        if kind == "person":
            first = FIRST_NAMES[self._dealt % len(FIRST_NAMES)]
            return f"{first} {self._root(kind)}"
        root = self._root(kind)
        before = self._rng.choice(BEGINNINGS.get(kind, [""]))
        after = self._rng.choice(ENDINGS.get(kind, [""]))
        return f"{before} {root} {after}".strip()

    def _root(self, kind: str) -> str:
        # Every fifth root is a near double of one that another type has: search and reading have
        # to be exact.
        if kind != "country" and self._dealt % 5 == 0 and (double := self._double(kind)):
            return double
        while True:
            root = self._fresh(kind)
            if _sayable(root) and all(_far(root, old) for old in self._roots):
                break
        self._roots.append(root)
        if kind != "country":
            self._close.append((root, kind))
        return root

    def _fresh(self, kind: str) -> str:
        while True:
            root = self._letters(kind)
            if len(set(root)) > len(root) - 2:
                return root.capitalize()

    def _letters(self, kind: str) -> str:
        pick = self._rng.choice
        onset = pick(ONSETS)
        start = ("qu" if onset == "q" else onset) + pick(VOWELS) + pick(MIDDLES)
        if kind == "country":
            return start + pick(COUNTRY_ENDS)
        if kind == "river":
            return start + pick(VOWELS)
        vowel = pick(VOWELS)
        return start + vowel + pick(ENDS_AFTER[vowel])

    def _double(self, kind: str) -> str | None:
        taken = next((pair for pair in self._close if pair[1] != kind), None)
        if taken is None:
            return None
        self._close.remove(taken)
        others = [old for old in self._roots if old != taken[0]]
        options = [
            root
            for root in _variants(taken[0])
            if _sayable(root) and all(_far(root, old) for old in others)
        ]
        if not options:
            return None
        self._roots.append(self._rng.choice(options))
        return self._roots[-1]


def _variants(root: str) -> Iterator[str]:
    """The roots that differ in one vowel after the first."""
    places = [i for i, letter in enumerate(root) if letter in VOWELS][1:]
    for place in places:
        for vowel in VOWELS:
            if vowel != root[place]:
                yield root[:place] + vowel + root[place + 1 :]


def _sayable(root: str) -> bool:
    return root.lower() not in REAL and not any(clash in root.lower() for clash in CLASHES)


def _far(one: str, two: str) -> bool:
    """Whether neither holds the other and they differ in more than one letter."""
    one, two = one.lower(), two.lower()
    if one in two or two in one:
        return False
    if len(one) == len(two):
        return sum(a != b for a, b in zip(one, two, strict=True)) > 1
    if abs(len(one) - len(two)) > 1:
        return True
    short, long = sorted((one, two), key=len)
    return all(long[:i] + long[i + 1 :] != short for i in range(len(long)))
