"""The closed world of the atlas: invented entities with typed relations that fit together."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from atlas_names import Names

NOW = 1985
"""Nothing in the world is later."""

COUNTS = {
    "country": 12,
    "region": 20,
    "city": 44,
    "river": 20,
    "mountain": 14,
    "lake": 10,
    "bridge": 16,
    "company": 20,
    "treaty": 10,
    "festival": 12,
    "instrument": 12,
    "academy": 12,
    "newspaper": 12,
    "ship": 18,
}
ELDERS = 44
"""People of the past: founders, architects, inventors."""
MODERNS = 86
"""People of today: presidents, captains, editors."""

UNITS = {
    "length": "kilometres",
    "height": "metres",
    "depth": "metres",
    "span": "metres",
    "area": "hectares",
    "tonnage": "tons",
    "circulation": "copies",
}
"""Unit of each measured relation; years and counts of people have none."""


@dataclass
class Entity:
    """A thing of the world, and the value of each relation it has."""

    name: str
    kind: str
    country: str = ""
    facts: dict[str, str | int] = field(default_factory=dict)
    former: dict[str, str] = field(default_factory=dict)
    """Values that no longer hold."""

    def year(self, relation: str) -> int:
        """A relation that is a number."""
        value = self.facts[relation]
        assert isinstance(value, int)
        return value


class World:
    """All entities; made by its seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = Names(self.rng)
        self.of: dict[str, list[Entity]] = {}
        for kind, count in COUNTS.items():
            self.of[kind] = [Entity(self.names.name(kind), kind) for _ in range(count)]
        self.elders = [Entity(self.names.name("person"), "person") for _ in range(ELDERS)]
        self.moderns = [Entity(self.names.name("person"), "person") for _ in range(MODERNS)]
        self.of["person"] = self.elders + self.moderns
        for build in (
            _countries,
            _people,
            _nature,
            _founded,
            _bridges,
            _ships,
            _treaties,
            _music,
            _lives,
            _nations,
            _offices,
            _former,
        ):
            build(self)
        self.by_name = {e.name: e for kind in self.of.values() for e in kind}

    def in_country(self, kind: str, country: str) -> list[Entity]:
        """The entities of a type that lie in a country."""
        return [e for e in self.of[kind] if e.country == country]

    def founder(self, earliest: int = 0, latest: int = NOW, *, but: Entity | None = None) -> Entity:
        """Someone of the past who was 24 to 55 at some time in between; the less used first."""
        able = [
            e
            for e in self.elders
            if e.year("birth year") + 24 <= latest
            and e.year("birth year") + 55 >= earliest
            and e is not but
        ]
        self.rng.shuffle(able)
        return min(able, key=lambda e: self._used(e))

    def _used(self, person: Entity) -> int:
        kinds = [e for kind in self.of.values() for e in kind]
        return sum(person.name in e.facts.values() for e in kinds)

    def year_of(self, person: Entity) -> int:
        """A year in which the person was 24 to 55."""
        return person.year("birth year") + self.rng.randint(24, 55)


def _countries(world: World) -> None:
    """Regions and towns: every country has some, every town is in one."""
    countries = [e.name for e in world.of["country"]]
    for kind in COUNTS:
        for place, entity in enumerate(world.of[kind]):
            entity.country = countries[place % len(countries)]
    for entity in world.of["country"]:
        entity.country = entity.name
    for region in world.of["region"]:
        region.facts["country"] = region.country
    for city in world.of["city"]:
        city.facts["region"] = world.rng.choice(world.in_country("region", city.country)).name
        city.facts["population"] = world.rng.randint(40, 4000) * 100 + world.rng.randint(0, 99)
        city.facts["founding year"] = world.rng.randint(1120, 1690)
    for region in world.of["region"]:
        own = [c for c in world.of["city"] if c.facts["region"] == region.name]
        others = [c for c in world.in_country("city", region.country) if c not in own]
        region.facts["chief town"] = (own or others)[0].name
        region.facts["area"] = world.rng.randint(210, 2900) * 100 + world.rng.randint(1, 99)
    cities = list(world.of["city"])
    world.rng.shuffle(cities)
    for one, two in zip(cities[::2], cities[1::2], strict=True):
        if one.country != two.country:
            one.facts["twin city"], two.facts["twin city"] = two.name, one.name


def _people(world: World) -> None:
    for person in world.elders:
        person.facts["birth year"] = world.rng.randint(1781, 1868)
    for person in world.moderns:
        person.facts["birth year"] = world.rng.randint(1908, 1950)
    for person in world.of["person"]:
        home = world.rng.choice(world.of["city"])
        person.country = home.country
        person.facts["birthplace"] = home.name


def _nature(world: World) -> None:
    rng = world.rng
    for mountain in world.of["mountain"]:
        mountain.facts["height"] = rng.randint(900, 6200)
        mountain.facts["nearest town"] = rng.choice(world.in_country("city", mountain.country)).name
        mountain.facts["first climber"] = world.founder().name
    for lake in world.of["lake"]:
        lake.facts["depth"] = rng.randint(18, 640)
        lake.facts["area"] = rng.randint(400, 90_000)
        lake.facts["main port"] = rng.choice(world.in_country("city", lake.country)).name
    rivers = sorted(world.of["river"], key=lambda _: rng.random())
    for place, river in enumerate(rivers):
        river.facts["length"] = 1400 - place * 55 + rng.randint(0, 50)
        river.facts["source"] = world.of["mountain"][place % len(world.of["mountain"])].name
        river.facts["mouth"] = rng.choice(world.of["lake"]).name
        river.facts["first surveyor"] = world.founder().name
        if 2 * place + 2 < len(rivers) and rng.random() < 0.8:
            river.facts["main tributary"] = rivers[2 * place + rng.choice([1, 2])].name
    for city in world.of["city"]:
        city.facts["river"] = rng.choice(
            world.in_country("river", city.country) or world.of["river"]
        ).name


def _founded(world: World) -> None:
    """Companies, academies, newspapers and festivals: a founder first, then the year."""
    for kind, town in (
        ("company", "headquarters"),
        ("academy", "home town"),
        ("newspaper", "printing town"),
        ("festival", "host city"),
    ):
        for entity in world.of[kind]:
            founder = world.founder()
            entity.facts["founder"] = founder.name
            entity.facts["founding year"] = world.year_of(founder)
            entity.facts[town] = world.rng.choice(world.in_country("city", entity.country)).name
    companies = sorted(world.of["company"], key=lambda e: e.year("founding year"))
    for place, company in enumerate(companies):
        company.facts["workforce"] = world.rng.randint(90, 24_000)
        if place >= 6 and world.rng.random() < 0.6:
            company.facts["parent company"] = world.rng.choice(companies[:place]).name
    academies = list(world.of["academy"])
    for one, two in zip(academies, academies[1:] + academies[:1], strict=True):
        one.facts["main rival"] = two.name
    for newspaper in world.of["newspaper"]:
        newspaper.facts["owner"] = world.rng.choice(companies).name
        newspaper.facts["circulation"] = world.rng.randint(31, 3900) * 100
    for festival in world.of["festival"]:
        festival.facts["main sponsor"] = world.rng.choice(companies).name


def _bridges(world: World) -> None:
    free = list(world.of["city"])
    world.rng.shuffle(free)
    companies = world.of["company"]
    for bridge in world.of["bridge"]:
        builder = min(world.rng.sample(companies, 4), key=lambda e: e.year("founding year"))
        architect = world.founder(earliest=builder.year("founding year") + 4)
        born = architect.year("birth year")
        first = max(born + 26, builder.year("founding year") + 1)
        city = free.pop()
        city.facts["main bridge"] = bridge.name
        bridge.country = city.country
        bridge.facts |= {
            "architect": architect.name,
            "opening year": world.rng.randint(first, max(first, born + 58)),
            "builder": builder.name,
            "span": world.rng.randint(45, 980),
            "river": city.facts["river"],
        }


def _ships(world: World) -> None:
    captains = iter(world.moderns)
    for ship in world.of["ship"]:
        captain = next(captains)
        owner = world.rng.choice(world.of["company"])
        captain.facts["employer"] = owner.name
        ship.facts |= {
            "captain": captain.name,
            "owner": owner.name,
            "home port": world.rng.choice(world.of["city"]).name,
            "launch year": world.rng.randint(1931, 1981),
            "tonnage": world.rng.randint(300, 41_000),
        }
    ships = list(world.of["ship"])
    world.rng.shuffle(ships)
    for one, two in zip(ships[:10:2], ships[1:10:2], strict=True):
        one.facts["sister ship"], two.facts["sister ship"] = two.name, one.name


def _treaties(world: World) -> None:
    for treaty in world.of["treaty"]:
        mediator = world.founder()
        year = world.year_of(mediator)
        treaty.facts |= {
            "mediator": mediator.name,
            "signing year": year,
            "drafter": world.founder(year, year, but=mediator).name,
            "venue": world.rng.choice(world.of["city"]).name,
            "guarantor": world.rng.choice(world.of["country"]).name,
        }


def _music(world: World) -> None:
    for instrument in world.of["instrument"]:
        instrument.facts |= {
            "inventor": world.founder().name,
            "main maker": world.rng.choice(world.of["company"]).name,
            "home region": world.rng.choice(world.in_country("region", instrument.country)).name,
        }
    for festival in world.of["festival"]:
        festival.facts["emblem instrument"] = world.rng.choice(world.of["instrument"]).name


def _lives(world: World) -> None:
    """Teachers, marriages, schools: none before its time."""
    rng = world.rng
    for person in world.of["person"]:
        born = person.year("birth year")
        if person in world.elders and born < 1810:
            continue
        elder = [p for p in world.of["person"] if 18 <= born - p.year("birth year") <= 60]
        if elder and rng.random() < 0.75:
            person.facts["mentor"] = rng.choice(elder).name
        schools = [a for a in world.of["academy"] if a.year("founding year") <= born + 16]
        if schools and rng.random() < 0.65:
            person.facts["alma mater"] = rng.choice(schools).name
        if rng.random() < 0.45:
            person.facts["favourite instrument"] = rng.choice(world.of["instrument"]).name
        if rng.random() < 0.5:
            towns = [c for c in world.of["city"] if c.name != person.facts["birthplace"]]
            person.facts["residence"] = rng.choice(towns).name
    for group in (world.elders, world.moderns):
        by_age = sorted(group, key=lambda p: p.year("birth year"))
        for one, two in zip(by_age[::2], by_age[1::2], strict=True):
            if two.year("birth year") - one.year("birth year") < 9 and rng.random() < 0.7:
                one.facts["spouse"], two.facts["spouse"] = two.name, one.name


def _nations(world: World) -> None:
    ships = list(world.of["ship"])
    for country in world.of["country"]:
        cities = world.in_country("city", country.name)
        rivers = world.in_country("river", country.name)
        mountains = world.in_country("mountain", country.name)
        country.facts |= {
            "capital": world.rng.choice(cities).name,
            "population": sum(c.year("population") for c in cities) * world.rng.randint(3, 9)
            + world.rng.randint(1, 999),
            "founding year": world.rng.randint(1702, 1779),
            "longest river": max(rivers, key=lambda e: e.year("length")).name,
            "highest mountain": max(mountains, key=lambda e: e.year("height")).name,
            "flagship": ships.pop().name,
            "national festival": world.in_country("festival", country.name)[0].name,
            "national instrument": world.in_country("instrument", country.name)[0].name,
            "oldest academy": world.in_country("academy", country.name)[0].name,
            "main newspaper": world.in_country("newspaper", country.name)[0].name,
        }


def _offices(world: World) -> None:
    """One office each, for people of today who are no captains."""
    people = iter(world.moderns[COUNTS["ship"] :])
    for country in world.of["country"]:
        country.facts["president"] = next(people).name
    for region in world.of["region"][:11]:
        region.facts["governor"] = next(people).name
    for city in world.of["city"][:15]:
        city.facts["mayor"] = next(people).name
    for academy in world.of["academy"][:9]:
        academy.facts["rector"] = next(people).name
    for company in world.of["company"][:12]:
        director = next(people)
        company.facts["director"] = director.name
        director.facts["employer"] = company.name
    for newspaper in world.of["newspaper"][:9]:
        editor = next(people)
        newspaper.facts["editor"] = editor.name
        editor.facts["employer"] = newspaper.name


def _former(world: World) -> None:
    """Values that were replaced: they are told as former ones, to tempt a careless reader."""
    for kind, relation, share in (
        ("country", "capital", 0.6),
        ("ship", "captain", 0.5),
        ("ship", "home port", 0.3),
        ("company", "headquarters", 0.4),
        ("newspaper", "owner", 0.4),
        ("festival", "host city", 0.4),
        ("city", "mayor", 0.6),
        ("academy", "rector", 0.4),
    ):
        for entity in world.of[kind]:
            if relation in entity.facts and world.rng.random() < share:
                entity.former[relation] = _replaced(world, entity, relation)


def _replaced(world: World, entity: Entity, relation: str) -> str:
    current = str(entity.facts[relation])
    if relation in ("captain", "mayor", "rector"):
        pool = [p.name for p in world.moderns]
    elif relation == "owner":
        pool = [c.name for c in world.of["company"]]
    else:
        pool = [c.name for c in world.in_country("city", entity.country)]
    return world.rng.choice([name for name in pool if name != current])
