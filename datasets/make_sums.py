"""Makes the sums: calculation tasks with exact answers.

Run it to write sums/tasks.jsonl; the same seed gives the same bytes. With --check nothing is
written: the file is compared with what would be made, and every answer is worked out again in
fractions, from the words of the prompt alone.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import operator
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

SEED = 11
FILE = Path(__file__).parent / "sums" / "tasks.jsonl"

OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def value_of(expression: str) -> Fraction:
    """The exact value of an expression with + - * / ** and brackets."""
    return _value(ast.parse(expression, mode="eval").body)


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp):
        return Fraction(OPERATORS[type(node.op)](_value(node.left), _value(node.right)))
    raise ValueError(f"no sum: {ast.dump(node)}")


def written(value: Fraction) -> list[str]:
    """All exact ways to write a number: whole, or as a decimal and as a fraction."""
    if value.denominator == 1:
        return [str(value.numerator)]
    digits = next(n for n in range(1, 7) if (value * 10**n).denominator == 1)
    return [f"{float(value):.{digits}f}", f"{value.numerator}/{value.denominator}"]


def _short(value: Fraction) -> bool:
    return (value * 1000).denominator == 1 and abs(value) < 10**9


Draw = Callable[[random.Random], str]
"""Draws one prompt of a family."""


def _long_addition(rng: random.Random) -> str:
    return (
        f"Compute {' + '.join(str(rng.randint(1000, 99_999)) for _ in range(rng.randint(2, 4)))}."
    )


def _plus_and_minus(rng: random.Random) -> str:
    a, b, c = (rng.randint(1000, 60_000) for _ in range(3))
    return f"Compute {a + b} - {b} + {c} - {rng.randint(100, 999)}."


def _brackets(rng: random.Random) -> str:
    a, b, c = (rng.randint(6, 89) for _ in range(3))
    return f"Compute {rng.randint(11, 79)} * ({a} + {b}) - {c}."


def _two_brackets(rng: random.Random) -> str:
    a, b, c, d = (rng.randint(12, 97) for _ in range(4))
    return f"Compute ({a} + {b}) * ({max(c, d) + 5} - {min(c, d)}) + {rng.randint(100, 999)}."


def _exact_division(rng: random.Random) -> str:
    divisor, times = rng.randint(7, 48), rng.randint(13, 95)
    return f"Compute {divisor * times} / {divisor} + {rng.randint(12, 60)} * {rng.randint(12, 60)}."


def _lowest(rng: random.Random, below: int, most: int) -> str:
    """A fraction in lowest terms with this denominator."""
    above = [n for n in range(1, most + 1) if math.gcd(n, below) == 1 and n != 1]
    return f"{rng.choice(above)}/{below}"


def _fraction_of(rng: random.Random) -> str:
    below = rng.choice([4, 5, 7, 8, 9, 12])
    return f"What is {_lowest(rng, below, below - 1)} of {below * rng.randint(13, 140)}?"


def _sum_of_fractions(rng: random.Random) -> str:
    a, b = rng.choice([(4, 8), (5, 10), (8, 16), (4, 5), (8, 20), (16, 20)])
    return f"Compute {_lowest(rng, a, a)} + {_lowest(rng, b, 3 * b)}."


def _fraction_times(rng: random.Random) -> str:
    a, b = rng.choice([(4, 8), (5, 16), (8, 20), (4, 25)])
    return f"Compute {_lowest(rng, a, 9)} * {_lowest(rng, b, 19)} * {rng.randint(2, 40)}."


def _percent_of(rng: random.Random) -> str:
    return f"What is {rng.randint(3, 96)}% of {rng.randint(12, 900) * 10}?"


def _percent_changed(rng: random.Random) -> str:
    word, share = rng.choice(["plus", "minus"]), rng.randint(2, 19) * 5
    whole = rng.randint(3, 240) * 20
    return f"What is {whole} {word} {share}% of {whole}?"


def _power(rng: random.Random) -> str:
    base, exponent = rng.choice(
        [(2, 13), (3, 9), (5, 7), (6, 6), (7, 5), (11, 4), (13, 4), (17, 3)]
    )
    sign = rng.choice("+-")
    return f"Compute {base}**{exponent} {sign} {rng.randint(101, 999)}."


def _two_powers(rng: random.Random) -> str:
    return f"Compute {rng.randint(12, 39)}**2 + {rng.randint(4, 14)}**3 - {rng.randint(11, 99)}."


def _crates(rng: random.Random) -> str:
    crates, each, broken = rng.randint(14, 60), rng.randint(12, 48), rng.randint(17, 99)
    return (
        f"A glass works packs {crates} crates with {each} bottles each. On the way {broken} "
        "bottles break. How many bottles arrive whole?"
    )


def _tickets(rng: random.Random) -> str:
    adults, children = rng.randint(110, 480), rng.randint(60, 390)
    price, less = rng.randint(12, 29), rng.randint(4, 11)
    return (
        f"A fair sells {adults} tickets to adults at {price} coins and {children} tickets to "
        f"children at {less} coins. How many coins does it take in?"
    )


def _journey(rng: random.Random) -> str:
    first, then = rng.randint(3, 9), rng.randint(2, 8)
    fast, slow = rng.randint(61, 98), rng.randint(24, 58)
    return (
        f"A train runs for {first} hours at {fast} kilometres an hour and then for {then} hours at "
        f"{slow} kilometres an hour. How many kilometres does it cover?"
    )


def _sharing(rng: random.Random) -> str:
    people, each, kept = rng.randint(6, 24), rng.randint(19, 90), rng.randint(15, 80)
    return (
        f"A harvest brings {people * each + kept} sacks of barley. The mill keeps {kept} sacks, "
        f"and {people} families share the rest equally. How many sacks does each family get?"
    )


FAMILIES: dict[str, tuple[tuple[str, int, Draw], ...]] = {
    "add": (("long", 8, _long_addition), ("plus-minus", 6, _plus_and_minus)),
    "multi_step": (
        ("brackets", 6, _brackets),
        ("two-brackets", 6, _two_brackets),
        ("division", 4, _exact_division),
    ),
    "fraction": (
        ("of-number", 5, _fraction_of),
        ("sum", 5, _sum_of_fractions),
        ("product", 4, _fraction_times),
    ),
    "percent": (("of-number", 7, _percent_of), ("change", 6, _percent_changed)),
    "power": (("one", 6, _power), ("two", 5, _two_powers)),
    "word_problem": (
        ("crates", 4, _crates),
        ("tickets", 4, _tickets),
        ("journey", 4, _journey),
        ("sharing", 4, _sharing),
    ),
}
"""By kind: its families of alike tasks, how many of each, and how one is drawn."""

READINGS: tuple[tuple[str, str], ...] = (
    (r"Compute ([-+*/() \d]+)\.", "{0}"),
    (r"What is (\d+/\d+) of (\d+)\?", "{0} * {1}"),
    (r"What is (\d+)% of (\d+)\?", "{0} / 100 * {1}"),
    (r"What is (\d+) plus (\d+)% of (\d+)\?", "{0} + {1} * {2} / 100"),
    (r"What is (\d+) minus (\d+)% of (\d+)\?", "{0} - {1} * {2} / 100"),
    (r"\D+ (\d+) crates \D+ (\d+) bottles each\. \D+ (\d+) bottles break\. \D+", "{0} * {1} - {2}"),
    (
        r"\D+ (\d+) tickets \D+ (\d+) coins \D+ (\d+) tickets \D+ (\d+) coins\. \D+",
        "{0}*{1}+{2}*{3}",
    ),
    (r"\D+ (\d+) hours \D+ (\d+) kilo\D+ (\d+) hours \D+ (\d+) kilo\D+", "{0} * {1} + {2} * {3}"),
    (r"\D+ (\d+) sacks \D+ keeps (\d+) sacks, and (\d+) families \D+", "({0} - {1}) / {2}"),
)
"""How each form of prompt is to be understood."""


def work_out(prompt: str) -> Fraction:
    """The answer to a prompt, from its words alone."""
    readings = [
        form.format(*found.groups())
        for pattern, form in READINGS
        if (found := re.fullmatch(pattern, prompt))
    ]
    if len(readings) != 1:
        raise ValueError(f"{len(readings)} ways to read {prompt!r}")
    return value_of(readings[0])


def steps(prompt: str) -> int:
    """How many operations the prompt takes."""
    if prompt.startswith("Compute"):
        return len(re.findall(r"\*\*|[-+*/]", prompt))
    return len(re.findall(r"\d+", prompt)) - 1


def difficulty(prompt: str, value: Fraction) -> str:
    """How hard a task is: by its steps, and by the length of its answer."""
    hardness = steps(prompt) + len(str(abs(value.numerator))) // 4 + (value.denominator > 1)
    return "easy" if hardness <= 2 else "medium" if hardness <= 4 else "hard"


def make(seed: int = SEED) -> str:
    """The text of the file."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for kind, families in FAMILIES.items():
        for family, count, draw in families:
            for _ in range(count):
                prompt = draw(rng)
                while prompt in seen or not _short(work_out(prompt)):
                    prompt = draw(rng)
                seen.add(prompt)
                rows.append(_row(prompt, kind, f"{kind}/{family}"))
    rng.shuffle(rows)
    numbered = ({"id": f"sums-{n:02d}", **row} for n, row in enumerate(rows, 1))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in numbered)


def _row(prompt: str, kind: str, cluster: str) -> dict[str, Any]:
    value = work_out(prompt)
    answers = written(value)
    level = difficulty(prompt, value)
    metadata = {"kind": kind, "cluster": cluster, "steps": steps(prompt), "difficulty": level}
    expected = answers if len(answers) > 1 else answers[0]
    return {"prompt": prompt, "expected": expected, "metadata": metadata}


def problems(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Answers that are not what the prompts come to, and other faults."""
    found = []
    counts = Counter(row["prompt"] for row in rows)
    found += [f"{prompt!r} is asked {n} times" for prompt, n in counts.items() if n > 1]
    for row in rows:
        expected = row["expected"]
        answers = [expected] if isinstance(expected, str) else expected
        value = work_out(row["prompt"])
        if any(Fraction(answer) != value for answer in answers):
            found.append(f"{row['id']}: {row['prompt']!r} is {value}, not {expected}")
    return found


def main() -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(description="Makes the sums, or checks them.")
    parser.add_argument("--check", action="store_true", help="write nothing, check the file")
    text = make()
    wrong = []
    if not parser.parse_args().check:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(text, encoding="utf-8", newline="\n")
    elif FILE.read_text(encoding="utf-8") != text:
        wrong.append(f"{FILE.name} is not what this script makes")
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    wrong += problems(rows)
    for key in ("kind", "difficulty"):
        counts = sorted(Counter(row["metadata"][key] for row in rows).items())
        print(f"{key}: " + ", ".join(f"{n} {value}" for value, n in counts))
    print("\n".join([*wrong, f"{len(rows)} tasks, {len(wrong)} problems"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
