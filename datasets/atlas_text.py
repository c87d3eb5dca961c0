"""Documents of the atlas: facts in four forms of sentence, former values, and talk in between."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from atlas_names import choices
from atlas_world import UNITS, Entity, World

LEAST_WORDS, MOST_WORDS = 46, 116

SLOTS = {
    "season": choices("spring|late summer|autumn|winter|the dry months|the rainy weeks"),
    "goods": choices("salt|wool|glass|tin|dried fish|barley|timber|copper wire|lamp oil|pears"),
    "colour": choices("pale green|rust red|slate blue|ochre|white|dark brown"),
    "weather": choices("fog|sleet|dry wind|steady rain|early frost|long heat"),
    "some": choices("two|three|four|five|six|seven"),
    "people": choices("pilots|bakers|weavers|clerks|farmers|painters|students|rope makers"),
}

GROUPS = {
    "country": "land",
    "region": "land",
    "city": "place",
    "river": "nature",
    "mountain": "nature",
    "lake": "nature",
    "bridge": "built",
    "ship": "built",
    "company": "house",
    "academy": "house",
    "newspaper": "house",
    "treaty": "event",
    "festival": "event",
    "instrument": "thing",
    "person": "person",
}

OPENINGS = {
    "country": "a small country with long winters|a country that lives on {goods} and patience|"
    "a country on a broken coast|an inland country with good roads",
    "region": "a region with more sheep than people|a stretch of hills and wet meadows|"
    "a region known for {goods}|a flat region under a wide sky",
    "city": "a town built on {some} hills|a town with narrow lanes and {colour} roofs|"
    "an old trading town|a town that smells of {goods}|a quiet town behind thick walls",
    "river": "a slow river with sandy banks|a cold and hasty river|"
    "a river that freezes in {season}|a river that carries rafts of timber",
    "mountain": "a bare summit above the pine woods|a mountain with {some} glaciers|"
    "a steep mountain that few people visit",
    "lake": "a deep lake with {colour} water|a lake between wooded shores|"
    "a still lake under cliffs",
    "bridge": "a stone bridge with {some} piers|an iron bridge painted {colour}|a long, low bridge",
    "company": "a firm that deals in {goods}|a family firm that grew fast|"
    "a firm with workshops in {some} towns",
    "treaty": "a treaty about fishing rights|a treaty about tolls and {goods}|"
    "a treaty that ended a long quarrel",
    "festival": "a festival held in {season}|a noisy festival with {some} processions|"
    "a festival for which shops close early",
    "instrument": "an instrument made from pear wood|an instrument with a dark, even tone|"
    "an instrument that takes years to learn",
    "academy": "an academy with {some} faculties|a school famous for its library|"
    "an academy where {people} may study at night",
    "newspaper": "a newspaper printed on {colour} paper|a morning paper with a dry style|"
    "a newspaper read mostly by {people}",
    "ship": "a steamer with a {colour} hull|a broad ship made for {goods}|"
    "a fast ship with tall masts",
    "person": "a careful writer of letters|a person with few words and many friends|"
    "a collector of old maps|a keen walker|a teacher at heart|a late riser with a sharp memory",
}

TALK = {
    "land": "Travellers cross it in {some} days, or not at all after {weather}.|"
    "Its farmers sell {goods} in every neighbouring land.|"
    "Milestones along the old roads are painted {colour}.|"
    "A law about {goods} takes up {some} pages and is never read.|"
    "In {season} most villages hold a market.|"
    "Stamps from here are {colour} and much collected.|"
    "Local {people} have their own saint and their own jokes.|"
    "Long {weather} can close the passes for a month.|"
    "An old rhyme names it together with {other}.|"
    "School books like to mention it beside {other}.|"
    "A much copied map shows it larger than life.",
    "place": "Visitors come in {season}, when the markets open early.|"
    "Most families keep a cellar full of {goods}.|"
    "Houses near the old gate are painted {colour}.|"
    "After a week of {weather} the roads close and everyone walks.|"
    "Guides here tell the same {some} stories to every visitor.|"
    "Trade in {goods} made a handful of families rich.|"
    "The evening bell rings {some} times before the gates close.|"
    "Local {people} hold their meetings in a converted barn.|"
    "An old rhyme compares the place with {other}.|"
    "A road sign near the station still points to {other}.|"
    "School books like to mention it together with {other}.",
    "nature": "Maps drawn before the great survey show it too far north.|"
    "In {season} the shore turns {colour}.|"
    "Herds cross here when {weather} drives them down.|"
    "Hikers need {some} days for the whole path.|"
    "Smugglers once hid {goods} in the caves nearby.|"
    "A hut for {people} stands half an hour below the path.|"
    "Birds rest here in {season}, by the thousand.|"
    "An old song pairs it with {other}.|"
    "Painters who had seen {other} often came here next.|"
    "The weather station reports {weather} on most mornings.",
    "built": "Its timbers were tarred again after a year of {weather}.|"
    "Models of it sell well among {people}.|"
    "In {season} it gets a new coat of {colour} paint.|"
    "A plaque lists the {some} workers who were hurt in the first year.|"
    "Loads of {goods} still pass every week.|"
    "During a month of {weather} it was closed to the public.|"
    "Postcards show it at dusk, with lamps lit.|"
    "An engineer who had worked on {other} gave advice.|"
    "A tavern nearby keeps a picture of it beside one of {other}.|"
    "Old hands say that it creaks before {weather} comes.",
    "house": "The front office has {some} windows and {colour} doors.|"
    "New {people} start in {season}, on probation.|"
    "A fire destroyed part of the archive, but not the ledgers.|"
    "Visitors are offered tea and a tour that takes an hour.|"
    "The yearly dinner serves {goods} in some disguise, by tradition.|"
    "In hard years it paid its people in {goods}.|"
    "A caricature of a cashier's hat hangs above the stairs.|"
    "Rumours about a merger with {other} came to nothing.|"
    "A long quarrel with friends of {other} ended with a handshake.|"
    "Its yearly report fills {some} thin volumes.",
    "event": "Children get the day off, and {people} march in front.|"
    "A copy of the first invitation hangs in a museum.|"
    "In years of {weather} everything takes place indoors.|"
    "Stalls sell {goods} and paper flags in {colour}.|"
    "The opening speech may not last longer than {some} minutes.|"
    "Historians have filled {some} volumes with its details.|"
    "A stamp shows the scene in {colour}.|"
    "The first draft named {other}, but that line was struck out.|"
    "Guests from {other} were late, which nobody has forgotten.|"
    "Old {people} remember it for the soup.",
    "thing": "Good ones are varnished {colour} and kept away from {weather}.|"
    "Beginners practise for {some} months before the first tune.|"
    "In {season} the wood shrinks and the tuning drifts.|"
    "Street players like it because it survives {weather}.|"
    "A workshop for {people} teaches how to repair one.|"
    "Cheap copies are packed with {goods} and sold at fairs.|"
    "A well known tune for it bears the name {other}.|"
    "A museum shows one that is said to come from {other}.|"
    "Its case weighs more than the instrument.",
    "person": "Friends recall long walks in {season} and short answers.|"
    "A notebook of recipes for {goods} turned up in a drawer.|"
    "Letters to fellow {people} fill {some} boxes.|"
    "A portrait in {colour} hangs in a small museum.|"
    "Neighbours speak of a garden that survived {weather}.|"
    "A street of {some} houses bears the name today.|"
    "Diaries mention {other} more than once, always in a friendly tone.|"
    "A planned journey to {other} never took place.|"
    "Early work as one of the town's {people} left its mark.|"
    "Breakfast was at dawn, even in {season}.|"
    "An essay about {goods} won a local prize.",
}

OWN, BOTH, ELSEWHERE = "own", "both", "elsewhere"


@dataclass
class Page:
    """One document on its way: its entity, and the sentences so far."""

    entity: Entity
    sentences: list[str] = field(default_factory=list)

    def words(self) -> int:
        """Words of the text."""
        return sum(len(s.split()) for s in self.sentences)


class Library:
    """The documents of a world, in the order of their ids."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        entities = [e for kind in world.of.values() for e in kind]
        self.rng.shuffle(entities)
        self.pages = [Page(e) for e in entities]
        self._page_of = {page.entity.name: page for page in self.pages}
        self._all = [e.name for e in entities]
        self.told: dict[tuple[str, str], list[str]] = {}
        """Entity and relation of a fact, and the titles of the documents that state it."""
        for page in self.pages:
            self._tell(page)
        for page in self.pages:
            self._finish(page)

    def rows(self) -> list[dict[str, str]]:
        """The documents as they are written to the file."""
        return [
            {"id": f"d{n:04d}", "title": p.entity.name, "text": " ".join(p.sentences)}
            for n, p in enumerate(self.pages, 1)
        ]

    def _tell(self, page: Page) -> None:
        entity = page.entity
        for relation, value in entity.facts.items():
            place = self._place(entity, relation, value)
            told = self.told[entity.name, relation] = []
            if place != ELSEWHERE:
                page.sentences.append(self._sentence(entity, relation, own=True))
                told.append(entity.name)
            if place != OWN:
                other = self._page_of[str(value)]
                other.sentences.append(self._sentence(entity, relation, own=False))
                told.append(other.entity.name)
        for relation, value in entity.former.items():
            page.sentences.append(f"The former {relation} of {entity.name} was {value}.")

    def _place(self, entity: Entity, relation: str, value: str | int) -> str:
        if isinstance(value, int) or relation in ("spouse", "twin city", "sister ship", "region"):
            return OWN
        crowded = len(self._page_of[str(value)].sentences) > 7 or len(entity.facts) < 4
        if crowded:
            return OWN
        if len(entity.facts) > 9:
            return self.rng.choice([OWN, ELSEWHERE, ELSEWHERE])
        return self.rng.choices([OWN, BOTH, ELSEWHERE], weights=[62, 20, 18])[0]

    def _sentence(self, entity: Entity, relation: str, *, own: bool) -> str:
        value = str(entity.facts[relation])
        number = value.isdigit()
        if number and relation in UNITS:
            value = f"{value} {UNITS[relation]}"
        forms = [
            f"The {relation} of {entity.name} is {value}.",
            f"{entity.name}'s {relation} is {value}.",
            f"{value} is the {relation} of {entity.name}.",
            f"Its {relation} is {value}.",
        ]
        genitive = 0 if entity.name.endswith("s") else 4
        its = 4 if own and entity.kind != "person" else 0
        return self.rng.choices(forms, weights=[4, genitive, 1 if number else 3, its])[0]

    def _finish(self, page: Page) -> None:
        kind = page.entity.kind
        self.rng.shuffle(page.sentences)
        opening = self.rng.choice(choices(OPENINGS[kind]))
        page.sentences.insert(0, self._fill(f"{page.entity.name} is {opening}.", page))
        talk = choices(TALK[GROUPS[kind]])
        self.rng.shuffle(talk)
        least = self.rng.randint(LEAST_WORDS, LEAST_WORDS + 30)
        while page.words() < least or (len(talk) > 9 and page.words() < MOST_WORDS - 40):
            place = self.rng.randint(1, len(page.sentences))
            page.sentences.insert(place, self._fill(talk.pop(), page))

    def _fill(self, text: str, page: Page) -> str:
        for slot, values in SLOTS.items():
            text = text.replace("{" + slot + "}", self.rng.choice(values))
        other = self.rng.choice(self._all)
        while other == page.entity.name:
            other = self.rng.choice(self._all)
        return text.replace("{other}", other)
