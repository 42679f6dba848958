"""Texts and numbers on which versions of Python, or of what it is built with, could disagree (H26).

Unicode 14 came with Python 3.11, 15.0 with 3.12, 15.1 with 3.13, 16 with 3.14: characters are
chosen that only some of these know, and letters whose upper, lower or folded forms surprise.
"""

from __future__ import annotations

import math
import sys

# Unicode 15.0: a sign of Kannada, a letter and a digit of Nag Mundari, an emoji, an ideograph.
# Unicode 15.1: an ideograph. Unicode 16: a Cyrillic letter, capital and small, a digit of Garay.
NEWER = ("\u0cf3", "\U0001e4d0", "\U0001e4f5", "\U0001fae8", "\U00031350", "\U0002ebf0")
NEWEST = ("\u1c89", "\u1c8a", "\U00010d45", "\U00011bc0")
# Long s, dotless and dotted i, Kelvin and Ångström sign, sharp s, ligature, final sigma, titlecase.
CASES = (
    "\u017f",
    "\u0131",
    "\u0130",
    "\u212a",
    "\u212b",
    "\u00df",
    "\u1e9e",
    "\ufb01",
    "\u03c2",
    "\u01c5",
)
DIGITS = ("\u0663", "\uff11\uff12", "\u00b2", "\u2460", "\u096f", "\U0001d7d8")
SPACES = (
    "\u00a0",
    "\u2003",
    "\u3000",
    "\u2028",
    "\u0085",
    "\x1c",
    "\x0b",
    "\ufeff",
    "\u180e",
    "\u200b",
)

TEXTS = (
    *("", "a", "A", "red", "Red", "red ", "EU_1", "100%", "a%b", "a_b", "a!b", "a\\b", "it's"),
    *("stra\u00dfe", "STRASSE", "e\u0301", "\u00e9", "LI\u017fT", "nul", "\x00", "\U0010ffff"),
    *("line\nend", "line\r\nend", "line\u2028end", "\U0001f469\u200d\U0001f52c", "x" * 300),
    *NEWER,
    *NEWEST,
    *CASES,
    *DIGITS,
    *SPACES,
)

NUMBERS: tuple[bool | int | float, ...] = (
    *(False, True, 0, 1, -1, 3, -7, 10, 255, 2**31, 2**53, 2**53 + 1, -(2**53) - 1),
    *(2**63 - 1, -(2**63), 10**18, 999_999_999_999_999_999),
    *(
        0.0,
        -0.0,
        0.1,
        0.2,
        0.3,
        0.1 + 0.2,
        0.1 + 0.2 + 0.3,
        1.0,
        -7.5,
        1e16,
        1e22,
        1e23,
        123456.789,
    ),
    *(sys.float_info.max, -sys.float_info.max, sys.float_info.min, 5e-324, -5e-324, 2.0**63),
    *(math.inf, -math.inf, math.nan, 0.5, 1.5, 2.5, 9007199254740993.0),
)

_COMPARED = (
    *("0", "1", "-7", "3.0", "0.3", ".1e0", "0.30000000000000004", "1e23", "5e-324", "-0.0"),
    *("1.7976931348623157e308", "2.2250738585072011e-308", "2.2250738585072014e-308"),
    *("9007199254740993", "9007199254740993.0", "9223372036854775807", "-9223372036854775808"),
    *("9223372036854775808.0", "0x1F", "0X1fL", "0b11111111", "0377", "1_0", "7.", ".5f", "7d"),
    *("0x1.8p3", "0x.8P0d", "0x1p-1074", "0x1.fffffffffffffp1023", "8.98846567431158e307"),
    *("'red'", "'RED'", "'it''s'", "'stra\u00dfe'", "'e\u0301'", "'\u00e9'", "TRUE", "false"),
)
_ARITHMETIC = (
    *("v + 1", "v - 1", "v * 2", "v / 2", "v / 3", "v / 0", "v / -0.0", "-v", "+v", "- - v"),
    *("v + 0.1 + 0.2 + 0.3", "0.1 + 0.2 + 0.3 + v", "v + 1e16 - 1e16", "v * 1e308 * 10", "v * v"),
    *("1 / v", "1.0 / v", "-7 / v", "v / 1e-320", "v * 5e-324", "v - v", "v / v", "v * 3037000500"),
    *("v + 9223372036854775807", "v - 9223372036854775807 - 1", "(v + 1) * (v - 1) / 2 - 1e0"),
)
_LIKE = (
    *("'%'", "'_'", "''", "'__'", "'%e%'", "'r_d%'", "'a!%b' ESCAPE '!'", "'a!_b' ESCAPE '!'"),
    *(
        "'a!!b' ESCAPE '!'",
        "'%!' ESCAPE '!'",
        "'a\\b'",
        "'a\\\\b' ESCAPE '\\'",
        "'100%%'",
        "'[a-z]'",
    ),
    *("'.'", "'(?i)a'", "'\\w'", "'line_end'", "'line%end'", "'_\u0301'", "'%\u00df%'", "'x%x'"),
    *(
        "'a\u00dfb' ESCAPE '\u00df'",
        "'%_\U0001e4d0' ESCAPE '\U0001e4d0'",
        "'it''s'",
        "'\U0001f469%'",
    ),
    *(f"'{one}'" for one in (*CASES, *NEWER[:2])),
)
SELECTORS = (
    *(f"v {sign} {one}" for one in _COMPARED for sign in ("=", "<>")),
    *(f"v {sign} {one}" for one in _COMPARED[:20] for sign in ("<", "<=", ">", ">=")),
    *(f"{one} > 0" for one in _ARITHMETIC),
    *(f"{one} = w" for one in _ARITHMETIC),
    *(f"{one} BETWEEN -1 AND 1.0E0" for one in _ARITHMETIC),
    *(f"v LIKE {one}" for one in _LIKE),
    *(f"v NOT LIKE {one} OR w IS NULL" for one in _LIKE),
    *("v BETWEEN w AND w", "v NOT BETWEEN 0 AND w / 0", "0 BETWEEN v AND -v", "v = w", "v <> v"),
    *(
        "v IN ('red', 'stra\u00dfe', '\u212a', '1')",
        "v NOT IN ('', 'A', '\U0001e4d0')",
        "v",
        "NOT v",
    ),
    *("v is null", "V IS NOT NULL", "$v = 1 Or _v = 1 oR v = 1", "v\t=\n1\r\f", "(v) = ((1))"),
    *("JMSPriority > 4 AND v IS NOT NULL", "JMSType = 'e\u0301'", "JMSCorrelationID LIKE '_'"),
    *("JMSTimestamp / 1000 * 1000 = JMSTimestamp", "JMSDeliveryMode <> 'PERSISTENT'"),
    " AND ".join(["v = v"] * 400),
    " + ".join(["v"] * 900) + " > 0.3",
    "(" * 100 + "v = 1" + ")" * 100,
)

NO_SELECTORS = (
    *(
        f"{one} = 1"
        for one in ("stra\u00dfe", "e\u0301", "\u00e9", *NEWER, *NEWEST, *CASES, *DIGITS)
    ),
    *(f"v{one} = 1" for one in (*NEWER, *NEWEST, *CASES, *DIGITS)),
    *(f"v = {one}" for one in (*NEWER, *DIGITS, *SPACES)),
    *(f"v ={one}1" for one in SPACES),
    *("v I\u017f NULL", "v L\u0131KE 'a'", "v L\u0130KE 'a'", "v LI\u212aE 'a'", "v = 1\uff10"),
    *("v LIKE 'a' ESCAPE 'e\u0301'", "v LIKE 'a' ESCAPE ''", "v = \u2018a\u2019", "v = 'open"),
    *("v = 9223372036854775808", "v = 0x8000000000000000", "v = 1e309", "v = 1e-400", "v = 1__"),
    *("v = 0b2", "v = 08", "v = 1_", "v = 0x", "v = 0x1p1024", "v = 0x1p-1075", "v = 1e"),
    *(
        "v = " + "9" * 4000,
        "v = 1e" + "9" * 4000,
        "v = 0." + "0" * 4000 + "1",
        "v = 0" + "7" * 4000,
    ),
    *("(" * 101 + "v = 1" + ")" * 101, "NOT " * 101 + "v", "v = " + "- " * 101 + "1"),
    *("v = 1 = 1", "1", "'a'", "v + 'a' = 1", "AND", "v LIKE 1", "v IN ()", "JMSExpiration = 1"),
    *(
        "v \U0001fae8",
        "v = 1 \U0002ebf0" + "\u0cf3" * 50,
        "v" * 4097,
        "\u00a0",
        "v = '\u0cf3' '\u0cf3'",
    ),
)
NAMES = (
    *(f"n{one}" for one in (*NEWER, *NEWEST, *CASES, *DIGITS, *SPACES)),
    *(
        "",
        "it's",
        'quo"te',
        "'\"",
        "a" * 129,
        "a\x7f",
        "\U0010ffff",
        "a\n",
        "n\u00e9",
        "temporary/x",
    ),
)
